package policy_test

import (
	"context"
	"fmt"
	"log"

	"haul/vrp"
	"haul/vrp/policy"
)

func ExampleShipped() {
	pi, err := policy.Shipped("cvrp20", policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pi.Close()
	p, err := vrp.Load("../../docs/examples/grid20.vrp")
	if err != nil {
		log.Fatal(err)
	}
	s, err := pi.Solve(context.Background(), p, "pomo8")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pi.Customers(), s.Cost < 650, p.Validate(s.Routes))
	// Output: 20 true <nil>
}

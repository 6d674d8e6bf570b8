package vrp_test

import (
	"context"
	"fmt"
	"log"

	"haul/vrp"
)

// Four customers around a depot, two of which fill a vehicle.
func ExampleExact() {
	coords := [][2]float64{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}}
	p, err := vrp.New(coords, []int{0, 5, 5, 5, 5}, 10)
	if err != nil {
		log.Fatal(err)
	}
	s, err := vrp.Exact(context.Background(), p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Cost, len(s.Routes), p.Validate(s.Routes))
	// Output: 8 2 <nil>
}

// With a budget of iterations the same seed gives the same routes on every machine.
func ExampleSearch() {
	p, err := vrp.Load("../docs/examples/grid20.vrp")
	if err != nil {
		log.Fatal(err)
	}
	s, err := vrp.Search(context.Background(), p, vrp.SearchOptions{Iterations: 20000, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.N(), s.Cost)
	// Output: 20 587
}

func ExampleProblem_Validate() {
	p, err := vrp.New([][2]float64{{0, 0}, {3, 4}, {6, 8}}, []int{0, 6, 6}, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Validate([][]int{{1, 2}}))
	fmt.Println(p.Validate([][]int{{1}, {2}}))
	// Output:
	// route 1 carries 12, capacity 10 (at customer 2)
	// <nil>
}

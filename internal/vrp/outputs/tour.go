package outputs

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"haul/internal/vrp"
)

// oneTour is which routes are a tour.
const oneTour = "a .tour is one route through all customers and back to one depot"

// tour is TSPLIB's format of tours: one vehicle's way through all places and back.
var tour = Output{
	Endings: []string{".tour"},
	Only:    oneTour,
	Takes: func(p *vrp.Problem) error {
		if p.Depots > 1 || p.Open {
			return errors.New(oneTour)
		}
		return nil
	},
	Write: func(w io.Writer, r Routes) error {
		n := len(r.Problem.Demand)
		if len(r.Solution.Routes) != 1 || len(r.Solution.Routes[0]) != n-1 {
			return errors.New(oneTour)
		}
		b := bufio.NewWriter(w)
		fmt.Fprintf(b, "NAME : %s.tour\nCOMMENT : Length %g\nTYPE : TOUR\nDIMENSION : %d\nTOUR_SECTION\n1\n", r.Problem.Name, r.Cost, n)
		for _, v := range r.Solution.Routes[0] {
			fmt.Fprintln(b, v+1) // places are counted from 1, the depot first
		}
		fmt.Fprint(b, "-1\nEOF\n")
		return b.Flush()
	},
	Example: "TYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n1\n2\n3\n4\n-1\nEOF\n",
}

// Package solve decides who solves a routing problem: one table of methods, with what each knows,
// up to which size, which is taken where nobody names one, and one wording for what is refused.
// The command line, the server, package vrp and through the command line Python all ask it.
//
// What a reader could break: a method that does not honour a part of a problem must say so in its
// line of the table. A problem that reaches a method's run function is solved as if the method knew
// all of it. The files stand on each other in the order run.go, unserved.go, table.go,
// choose.go, solve.go.
package solve

import (
	"fmt"

	"haul/internal/vrp"
)

// The names of methods, as users write them and as reports have them.
const (
	Exact   = "exact"
	Search  = "search"
	Savings = "savings"
	Policy  = "policy"
	Both    = "policy and search" // the search goes on from a policy's routes
)

// Method is one way to solve a problem.
type Method struct {
	Name  string
	Does  string // for help, in one line
	Knows string // in a refusal: "NAME knows KNOWS, and the problem ..."
	Most  int    // customers at most; 0: any number
	Alone int    // the default for one problem up to so many customers; 0: never, -1: any number
	Many  int    // the default for many generated problems, in the same way
	Quick bool   // ends in about a second by itself, and takes no time limit
	Named bool   // a user can name it; the others follow from what else is asked for

	unknown func(*vrp.Problem) error // what of a problem it does not honour; nil: nothing
	// asked says what it does not honour where it is named on the command line; nil: as unknown
	asked func(*vrp.Problem) error
	run   func(*job) error
	many  manyFunc // nil: it solves one problem at a time
}

// table has the methods in the order in which they are preferred: the first that a default reaches
// is taken, and the first that could do what another refuses is what the refusal recommends.
var table = []*Method{
	{Name: Exact, Does: "the optimum, by dynamic programming over sets of customers", Knows: "no limit but the capacity, or one vehicle for all, and of few customers every part",
		Most: vrp.MaxExactN, Alone: 12, Many: vrp.MaxExactN, Quick: true, Named: true, unknown: vrp.ExactTakes, asked: vrp.OptimalPartsTakes, run: runExact, many: exactMany},
	{Name: Search, Does: "ruin and recreate under annealing, as good as the time allows",
		Knows: "every part of a problem", Alone: -1, Named: true, run: runSearch},
	{Name: Savings, Does: "Clarke-Wright with local search and a fixed budget", Knows: "no limit but the capacity",
		Many: -1, Quick: true, Named: true, unknown: (*vrp.Problem).Plain, run: runSavings, many: savingsMany},
	{Name: Policy, Does: "a trained policy", Knows: variants,
		Quick: true, unknown: routable, run: runPolicy},
	{Name: Both, Does: "the search, from a trained policy's routes", Knows: variants,
		unknown: routable, run: runBoth},
}

// variants is what policies know together; one may have learned some of it (policy.Takes).
const variants = "capacities, open routes, backhauls, limits of length and windows, between coordinates"

// routable says why no policy can read a problem.
func routable(p *vrp.Problem) error {
	if p.X == nil {
		return fmt.Errorf("it has no coordinates")
	}
	_, err := p.Variant()
	return err
}

// Find is the method of a name, nil where there is none.
func Find(name string) *Method {
	for _, m := range table {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Named are the names that a user can give, in the table's order.
func Named() (names []string) {
	for _, m := range table {
		if m.Named {
			names = append(names, m.Name)
		}
	}
	return names
}

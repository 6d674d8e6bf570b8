package random

import (
	"math/bits"
	"math/rand/v2"

	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/rulestest"
)

// mostNodes is the number of nodes that the instances of random files have at most.
const mostNodes = 10

// Counts describes random routes.
type Counts struct {
	Steps, Mixed int // decisions, and those at which some nodes that are left were allowed and others not
	Dead, Ended  int // routes whose vehicle had nowhere to go, and all that ended
}

// Walk draws instances of a file and walks random routes, ten per instance. It stops early if
// failed returns an error after a route, and returns that.
func Walk(p *rules.Problem, form rules.Form, seed uint64, walks int, c *Counts, failed func() error) error {
	r := rand.New(rand.NewPCG(seed, 5))
	var in *rules.Instance
	for w := range walks {
		if w%10 == 0 {
			n := 1 + r.IntN(mostNodes-p.File.Depots)
			in = p.Draw(form, &rules.Drawing{Seed: seed, Purpose: rng.Instances, Symmetries: 1 + 7*r.IntN(2)}, uint64(w), n)
			features := make([]float32, p.File.Features)
			for j := range p.Nodes(n) {
				p.NodeFeatures(form, in, j, features)
			}
		}
		c.route(p, form, in, r)
		if err := failed(); err != nil {
			return err
		}
	}
	return nil
}

// route walks one random route.
func (c *Counts) route(p *rules.Problem, form rules.Form, in *rules.Instance, r *rand.Rand) {
	route := rules.NewRoute(p, form, in)
	mask, context := make([]uint64, 1), make([]float32, p.File.Context)
	for limit := p.Steps(form, in.Customers); !route.Done && route.Steps < limit; {
		count := route.Allowed(mask)
		c.Steps++
		if count > 0 && bits.OnesCount64(mask[0]) < route.Unvisited+p.File.Depots {
			c.Mixed++
		}
		if count == 0 {
			route.Strand()
			c.Dead++
			break
		}
		route.Context(context)
		route.Visit(rulestest.Nth(mask, r.IntN(count)))
	}
	if route.Done {
		c.Ended++
	}
}

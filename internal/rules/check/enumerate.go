package check

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
)

const (
	mostRoutes     = 3_000 // that are enumerated for one instance
	smallInstances = 4
)

// enumerate solves small instances: all routes that the rules allow, the cheapest of them.
func (c *checker) enumerate() {
	form := eval.New(c.p)
	for n := 1; n <= 6; n++ {
		var sum float64
		total := 0
		for g := range uint64(smallInstances) {
			in := c.p.Draw(form, &rules.Drawing{Seed: c.Seed, Purpose: rng.Instances}, g, n)
			cost, routes := Enumerate(c.p, form, in, mostRoutes)
			if routes >= mostRoutes {
				return // larger ones take longer still
			}
			sum += cost
			total += routes
		}
		c.report.Optima = append(c.report.Optima, Optimum{n, sum / smallInstances, total / smallInstances})
	}
}

// Enumerate returns the least cost of the routes through an instance, and how many routes it tried:
// all, or `most` of them. Routes that reach the file's bound on steps count as they are then.
func Enumerate(p *rules.Problem, form rules.Form, in *rules.Instance, most int) (best float64, routes int) {
	best = math.Inf(1)
	limit := p.Steps(form, in.Customers)
	var from func(r *rules.Route)
	from = func(r *rules.Route) {
		if routes >= most {
			return
		}
		mask := make([]uint64, (p.Nodes(in.Customers)+63)/64)
		if !r.Done && r.Steps < limit && r.Allowed(mask) == 0 {
			r.Strand()
		}
		if r.Done || r.Steps >= limit {
			routes++
			best = min(best, float64(r.Cost))
			return
		}
		for i, w := range mask {
			for ; w != 0; w &= w - 1 {
				next := r.Clone()
				next.Visit(i*64 + bits.TrailingZeros64(w))
				from(next)
			}
		}
	}
	from(rules.NewRoute(p, form, in))
	return best, routes
}

// symmetries reports whether random routes cost the same, but for rounding, under the eight
// symmetries of the unit square, by which training and decoding may then vary an instance.
func (c *checker) symmetries() {
	form := eval.New(c.p)
	c.report.Symmetric = c.p.X >= 0
	for g := range uint64(20) {
		var first float64
		for k := range uint64(8) {
			in := c.p.Draw(form, &rules.Drawing{Seed: c.Seed, Purpose: rng.Instances, Symmetries: 8}, 8*g+k, 12)
			r := rand.New(rand.NewPCG(g, 1)) // the same choices among as many nodes
			route := rules.NewRoute(c.p, form, in)
			mask := make([]uint64, 1)
			for limit := c.p.Steps(form, 12); !route.Done && route.Steps < limit; {
				count := route.Allowed(mask)
				if count == 0 {
					route.Strand()
					break
				}
				route.Visit(nth(mask, r.IntN(count)))
			}
			if k == 0 {
				first = float64(route.Cost)
			} else if math.Abs(float64(route.Cost)-first) > 1e-4*(1+math.Abs(first)) {
				c.report.Symmetric = false
			}
		}
	}
}

// nth returns the number of the set bit of that rank.
func nth(mask []uint64, rank int) int {
	for i, w := range mask {
		if n := bits.OnesCount64(w); rank >= n {
			rank -= n
			continue
		}
		for ; rank > 0; rank-- {
			w &= w - 1
		}
		return i*64 + bits.TrailingZeros64(w)
	}
	panic("check: a mask without that bit")
}

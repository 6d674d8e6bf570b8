package policy

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"sync"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/ir"
	"haul/internal/vrp"
)

// Policies of problem files. Their routes are judged by the plain form of the rules, which no
// device runs, and compared with those that go to the nearest allowed node.

// Nearest is what a problem file's costs are compared with: routes that go to the nearest customer
// whom the rules allow, and to a depot where they allow none.
const Nearest = "nearest allowed"

// compiledFiles are the compiled problem files, by text and settings: a rule set is one value.
var compiledFiles sync.Map

// fileOf is the rule set of a source that has a problem file, which CheckRules has accepted.
func fileOf(src vrp.Source) kernel.RuleSet {
	set, err := compiled(src.File, src.FileSettings)
	if err != nil {
		panic("policy: a problem file that was not checked: " + err.Error())
	}
	return set
}

// CheckRules says what is wrong with the problem file of settings, nil where nothing is or there is
// none.
func CheckRules(c *config.Config) error {
	if c.Problem.Rules == "" {
		return nil
	}
	_, err := compiled(c.Problem.Rules, c.Problem.RulesSettings)
	return err
}

func compiled(text, settings string) (kernel.RuleSet, error) {
	key := [2]string{text, settings}
	if set, ok := compiledFiles.Load(key); ok {
		return set.(kernel.RuleSet), nil
	}
	given := map[string]string{}
	for s := range strings.SplitSeq(settings, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return kernel.RuleSet{}, fmt.Errorf("problem.rules_settings: %q: write a field of Settings and its value, as in Limit=4", s)
		}
		given[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	p, err := rules.Compile("problem.rules", []byte(text), given)
	if err != nil {
		return kernel.RuleSet{}, err
	}
	set, _ := compiledFiles.LoadOrStore(key, kernel.Compiled(p))
	return set.(kernel.RuleSet), nil
}

// drawing is how a source draws a file's instances.
func drawing(src vrp.Source, symmetries int) *rules.Drawing {
	d := &rules.Drawing{Seed: src.Seed, Purpose: src.Purpose, Symmetries: symmetries}
	if src.Distribution == vrp.Grid {
		d.Grid = src.CoordRange
	}
	return d
}

// validateFile walks a route by the plain form: every step must be allowed, and the device's cost
// must be that of the rules.
func validateFile(src vrp.Source, symmetries int, row uint64, actions []int32, cost float32) error {
	p := fileOf(src).Problem()
	form := eval.New(p)
	r := rules.NewRoute(p, form, p.Draw(form, drawing(src, symmetries), row, src.N))
	mask := make([]uint64, (p.Nodes(src.N)+63)/64)
	for limit := p.Steps(form, src.N); !r.Done; {
		if r.Steps == limit || r.Allowed(mask) == 0 {
			r.Strand()
			break
		}
		j := actions[r.Steps]
		if j < 0 || int(j) >= p.Nodes(src.N) || mask[j>>6]>>(j&63)&1 == 0 {
			return fmt.Errorf("step %d goes to node %d, which the rules do not allow", r.Steps, j)
		}
		r.Visit(int(j))
	}
	if !rules.Same(ir.Float32, math.Float32bits(r.Cost), math.Float32bits(cost)) {
		return fmt.Errorf("the device states the cost %g, the rules %g", cost, r.Cost)
	}
	return nil
}

// nearestCosts are the costs of the routes that go to the nearest allowed node.
func nearestCosts(src vrp.Source, first int, out []float64) {
	p := fileOf(src).Problem()
	form := eval.New(p)
	mask := make([]uint64, (p.Nodes(src.N)+63)/64)
	for i := range out {
		in := p.Draw(form, drawing(src, 1), uint64(first+i), src.N)
		r := rules.NewRoute(p, form, in)
		for limit := p.Steps(form, src.N); !r.Done; {
			if r.Steps == limit || r.Allowed(mask) == 0 {
				r.Strand()
				break
			}
			r.Visit(nearest(p, in, r.At, mask))
		}
		out[i] = float64(r.Cost)
	}
}

// nearest returns the customer of a mask that is nearest to a node, the first of those that are as
// near; a depot if there is no customer.
func nearest(p *rules.Problem, in *rules.Instance, at int, mask []uint64) int {
	best, depot, least := -1, -1, math.Inf(1)
	way := func(j int) float64 {
		if p.X < 0 {
			return 0
		}
		of := func(column, node int) float64 { return float64(math.Float32frombits(in.Nodes[column][node])) }
		return math.Hypot(of(p.X, j)-of(p.X, at), of(p.Y, j)-of(p.Y, at))
	}
	for i, w := range mask {
		for ; w != 0; w &= w - 1 {
			j := i*64 + bits.TrailingZeros64(w)
			if rules.DepotAt(j, in.Customers) >= 0 {
				depot = j
			} else if d := way(j); d < least {
				best, least = j, d
			}
		}
	}
	if best < 0 {
		return depot
	}
	return best
}

// errFileDecode refuses the decoders that search on the host: they know no problem file.
var errFileDecode = errors.New("a policy of a problem file decodes by greedy, pomo and sample: beam, eas and join do not know its rules")

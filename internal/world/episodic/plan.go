package episodic

import (
	"slices"

	"haul/internal/world/grid"
)

// plan holds what a history has shown of its goal: the next state and the reward of each action in
// each state. Values are computed from it by sweeps, so labels depend on the history only.
type plan struct {
	tried []outcome // [state, action]
	value [][grid.NumActions]float64
	order []int32 // the tried entries, in the order of their first try
}

type outcome struct {
	next   int32
	reward uint8
	known  bool
	done   bool
}

// planDiscount makes shorter paths better.
const planDiscount = 0.9

func newPlan(r Room) *plan {
	n := 2 * r.Size * r.Size
	return &plan{tried: make([]outcome, n*grid.NumActions), value: make([][grid.NumActions]float64, n)}
}

func (p *plan) learn(state, action, reward, next int, done bool) {
	at := state*grid.NumActions + action
	if !p.tried[at].known {
		p.order = append(p.order, int32(at))
	}
	p.tried[at] = outcome{int32(next), uint8(reward), true, done}
}

// solve sweeps until no value changes. Rooms are deterministic, so the number of sweeps is at most
// the number of steps of the longest path. Sweeping from the last entry to the first needs few
// sweeps as a rule.
func (p *plan) solve() {
	for moved := true; moved; {
		moved = false
		for _, at := range slices.Backward(p.order) {
			o := &p.tried[at]
			v := float64(o.reward)
			if !o.done {
				v += planDiscount * slices.Max(p.value[o.next][:])
			}
			q := &p.value[at/grid.NumActions][at%grid.NumActions]
			if v > *q+1e-12 {
				*q, moved = v, true
			}
		}
	}
}

// label sets Best of every step.
func (p *plan) label(steps []Step, g Goal, r Room) {
	p.solve()
	holds := !g.keyed()
	for i := range steps {
		s := &steps[i]
		state := int(s.Y)*r.Size + int(s.X)
		if holds && g.keyed() {
			state += r.Size * r.Size
		}
		q := &p.value[state]
		s.Best = s.Action
		if most := slices.Max(q[:]); most > q[s.Action]+1e-12 {
			s.Best = uint8(slices.Index(q[:], most))
		}
		switch {
		case s.Ends:
			holds = !g.keyed()
		case s.Reward > 0:
			holds = true
		}
	}
}

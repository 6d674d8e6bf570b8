package history

import (
	"slices"

	"haul/internal/world/grid"
)

// PackBest packs like Pack, with another byte per record: the best action in hindsight, computed
// from all streams of the goal. Among equally good actions it prefers the learner's.
func (h *Rooms) PackBest(goals []int, streams, steps int) (*Data, error) {
	plain, err := h.Pack(goals, streams, steps)
	if err != nil {
		return nil, err
	}
	out := &Data{Words: make([]int32, 0, 2*len(plain.Words)), Stride: 2, Label: 4}
	for i, g := range goals {
		all := h.goal(g)
		next := stager(h.Goals[g])
		values := hindsight(all, h.Streams, h.Room.Horizon, next)
		for s := range streams {
			stage := 0
			for t := range steps {
				if t%h.Room.Horizon == 0 {
					stage = 0
				}
				step := all.At(s*h.Steps + t)
				q, best := &values[stage][step.Cell()], step.Action()
				if most := slices.Max(q[:]); most > q[best]+1e-9 {
					best = uint8(slices.Index(q[:], most))
				}
				out.Words = append(out.Words, plain.Words[(i*streams+s)*steps+t], int32(best))
				stage = next(stage, step)
			}
		}
	}
	return out, nil
}

// hindsightDiscount makes shorter paths better.
const hindsightDiscount = 0.9

// stages is the number of states that a cell can stand for. With a key and a door, they are counted
// by the rewards of the episode so far. Dark Room has one.
const stages = 3

// stager returns a function that computes a goal's stage after a step.
func stager(g grid.Goal) func(stage int, s grid.Step) int {
	if !g.Keyed() {
		return func(int, grid.Step) int { return 0 }
	}
	return func(stage int, s grid.Step) int { return min(stages-1, stage+int(s.Reward())) }
}

// hindsight returns the values of actions by stage and cell, computed from the streams of a goal.
// Of each episode's last step only the reward is used, because the next state is not recorded.
func hindsight(all Steps, streams, horizon int, later func(int, grid.Step) int) *[stages][256][grid.NumActions]float64 {
	type outcome struct {
		next  grid.Cell
		stage int
		pays  float64
		known bool
	}
	var tried [stages][256][grid.NumActions]outcome
	steps := all.Len() / streams
	for s := range streams {
		stage := 0
		for t := range steps {
			if t%horizon == 0 {
				stage = 0
			}
			at := all.At(s*steps + t)
			from := &tried[stage][at.Cell()][at.Action()]
			if stage = later(stage, at); (t+1)%horizon != 0 && t+1 < steps {
				*from = outcome{all.At(s*steps + t + 1).Cell(), stage, float64(at.Reward()), true}
			}
		}
	}
	values := new([stages][256][grid.NumActions]float64)
	for moved := true; moved; {
		moved = false
		for stage := range tried {
			for cell := range tried[stage] {
				for action, o := range tried[stage][cell] {
					if !o.known {
						continue
					}
					v := o.pays + hindsightDiscount*slices.Max(values[o.stage][o.next][:])
					if q := &values[stage][cell][action]; v > *q+1e-9 {
						*q, moved = v, true
					}
				}
			}
		}
	}
	return values
}

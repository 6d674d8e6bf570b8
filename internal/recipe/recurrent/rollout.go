package recurrent

import (
	"context"
	"math"

	"haul/internal/rng"
	"haul/internal/world/xland"
)

// rollout is what a learner gathers between two updates, environment by environment. An episode may
// continue from one rollout to the next, and units do.
//
// What a reader could break: the value of what follows an episode's end is 0, since its limit is
// part of what a goal pays; units go on all the same.
type rollout struct {
	envs, steps, inputs, units int

	index    []int32   // [environment, step, input]
	from     []float32 // [environment, unit]: before the first step
	sample   []float32 // [environment, step, 4]: what kernel.PPO takes
	value    []float32 // [environment, step], and after the last one
	reward   []float32 // [environment, step]
	ends     []bool    // [environment, step]
	logProb  [xland.NumActions]float64
	earned   []float64 // by environment: of the episode under way
	returns  float64   // of the episodes that ended
	episodes int
}

func newRollout(s *Settings, inputs int) rollout {
	n := s.Envs * s.Rollout
	return rollout{envs: s.Envs, steps: s.Rollout, inputs: inputs, units: s.Hidden, index: make([]int32, n*inputs), from: make([]float32, s.Envs*s.Hidden),
		sample: make([]float32, 4*n), value: make([]float32, s.Envs*(s.Rollout+1)), reward: make([]float32, n), ends: make([]bool, n),
		earned: make([]float64, s.Envs)}
}

// rolloutBytes is what a rollout takes.
func rolloutBytes(s *Settings, inputs int) int64 {
	return int64(s.Envs) * (int64(s.Rollout)*(4*int64(inputs)+16+4+4+1) + 4*int64(s.Hidden))
}

// show writes what each environment shows to the network's next step.
func (l *learner) show() {
	cells := l.inputs - 2
	for e := range l.Envs {
		row := l.net.index[e*l.inputs:][:l.inputs]
		for i, tile := range l.batch.Views[e*cells:][:cells] {
			row[i] = int32(tile)
		}
		row[cells], row[cells+1] = int32(firstAction)+l.last[e], int32(firstOutcome)+l.outcome[e]
	}
}

// collect acts for so many steps. The end of the context is heeded before each.
func (l *learner) collect(ctx context.Context, steps int) error {
	r := &l.roll
	if err := l.net.act.ReadBatch(l.net.actState, l.boxFrom); err != nil {
		return err
	}
	width := int(xland.NumActions) + 1
	for t := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.show()
		if err := l.net.forward(); err != nil {
			return err
		}
		for e := range l.Envs {
			at := e*r.steps + t
			copy(r.index[at*l.inputs:][:l.inputs], l.net.index[e*l.inputs:])
			out := l.net.outs[e*width:][:width]
			u := rng.Float(rng.At(l.key, uint64(e), uint32(l.done), rng.Learner)[0])
			a := r.draw(out[:width-1], u)
			l.actions[e] = a
			s := r.sample[4*at:][:4]
			s[0], s[1] = float32(a), float32(r.logProb[a])
			r.value[e*(r.steps+1)+t] = out[width-1]
		}
		l.keep.before(l)
		l.batch.Step(l.actions)
		for e := range l.Envs {
			at, paid, ends := e*r.steps+t, l.batch.Rewards[e], l.batch.Ends[e]
			r.reward[at], r.ends[at] = paid, ends
			l.last[e], l.outcome[e] = int32(l.actions[e]), outcome(paid, ends)
			if r.earned[e] += float64(paid); ends {
				r.returns += r.earned[e]
				r.episodes++
				r.earned[e] = 0
			}
		}
		l.keep.after(l)
		l.done++
	}
	return nil
}

// draw picks an action by a number in [0, 1), and leaves the logarithms of all probabilities.
func (r *rollout) draw(logits []float32, u float32) uint8 {
	most := logits[0]
	for _, v := range logits {
		most = max(most, v)
	}
	sum := 0.0
	for k, v := range logits {
		r.logProb[k] = math.Exp(float64(v - most))
		sum += r.logProb[k]
	}
	chosen, below := len(logits)-1, 0.0
	for k, p := range r.logProb {
		if below += p; float64(u)*sum < below {
			chosen = k
			break
		}
	}
	shift := float64(most) + math.Log(sum)
	for k, v := range logits {
		r.logProb[k] = float64(v) - shift
	}
	return uint8(chosen)
}

// spreadFloor is added to the spread that advantages are divided by: where nothing was paid yet,
// what is left of advantages is the critic's error, and blown up it would drown the entropy bonus.
const spreadFloor = 0.02

// advantages fills in advantages (generalized advantage estimation) and the critic's targets, from
// values that reach one step beyond.
func (r *rollout) advantages(s *Settings) {
	var sum, squares float64
	for e := range r.envs {
		v, carried := r.value[e*(r.steps+1):][:r.steps+1], 0.0
		for t := r.steps - 1; t >= 0; t-- {
			at, after := e*r.steps+t, float64(v[t+1])
			if r.ends[at] {
				after, carried = 0, 0
			}
			carried = float64(r.reward[at]) + s.Discount*after - float64(v[t]) + s.Discount*s.Lambda*carried
			m := r.sample[4*at:][:4]
			m[2], m[3] = float32(carried), float32(carried)+v[t]
			sum += carried
			squares += carried * carried
		}
	}
	n := float64(r.envs * r.steps)
	mean := sum / n
	spread := math.Sqrt(max(0, squares/n-mean*mean)) + spreadFloor
	for at := range r.envs * r.steps {
		m := r.sample[4*at:][:4]
		m[2] = float32((float64(m[2]) - mean) / spread)
	}
}

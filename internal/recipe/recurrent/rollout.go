package recurrent

import (
	"context"
	"errors"
	"math"

	"haul/internal/rng"
)

// rollout holds what a learner collects between two updates, environment by environment. Episodes
// and recurrent units may continue in the next rollout.
//
// The value that follows the end of an episode is 0 if the episode has terminated, and the critic's
// estimate if a limit truncated it. The units continue in both cases.
type rollout struct {
	senses
	envs, steps, units int

	index    []int32   // [environment, step, input]
	measured []float32 // [environment, step, number]
	from     []float32 // [environment, unit]: before the first step
	sample   []float32 // [environment, step, 4]: the samples of kernel.PPO
	value    []float32 // [environment, step], and the value after the last step
	reward   []float32 // [environment, step]
	ends     []bool    // [environment, step]
	after    []float32 // [environment, step]: the value that follows the end of an episode
	idle     []bool    // [environment, step]: the environment ignored the action
	logProb  []float64 // by action
	earned   []float64 // by environment: the return of the current episode
	returns  float64   // sum over the finished episodes
	episodes int
}

func newRollout(s *Settings, c senses) rollout {
	n := s.Envs * s.Rollout
	return rollout{senses: c, envs: s.Envs, steps: s.Rollout, units: s.Hidden, index: make([]int32, n*c.inputs), measured: make([]float32, n*c.measured),
		from: make([]float32, s.Envs*s.Hidden), sample: make([]float32, 4*n), value: make([]float32, s.Envs*(s.Rollout+1)), reward: make([]float32, n),
		ends: make([]bool, n), after: make([]float32, n), idle: make([]bool, n), logProb: make([]float64, c.actions), earned: make([]float64, s.Envs)}
}

// rolloutBytes returns the size of a rollout in bytes.
func rolloutBytes(s *Settings, c senses) int64 {
	return int64(s.Envs) * (int64(s.Rollout)*(4*int64(c.inputs+c.measured)+16+4+4+4+2) + 4*int64(s.Hidden))
}

// collect takes the given number of steps. It checks ctx before each step.
func (l *learner) collect(ctx context.Context, steps int) error {
	r, width := &l.roll, l.actions+1
	if err := l.net.act.ReadBatch(l.net.actState, l.boxFrom); err != nil {
		return err
	}
	for t := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.envs.show(l.net.index, l.net.measured)
		if err := l.net.forward(); err != nil {
			return err
		}
		for e := range l.Envs {
			at := e*r.steps + t
			copy(r.index[at*r.inputs:][:r.inputs], l.net.index[e*r.inputs:])
			copy(r.measured[at*r.senses.measured:][:r.senses.measured], l.net.measured[e*r.senses.measured:])
			out := l.net.outs[e*width:][:width]
			u := rng.Float(rng.At(l.key, uint64(e), uint32(l.done), rng.Learner)[0])
			a := r.draw(out[:width-1], u)
			l.acts[e] = a
			s := r.sample[4*at:][:4]
			s[0], s[1] = float32(a), float32(r.logProb[a])
			r.value[e*(r.steps+1)+t] = out[width-1]
		}
		if err := l.envs.step(ctx, l.acts); err != nil {
			return err
		}
		limits := false
		for e := range l.Envs {
			at := e*r.steps + t
			paid, end, counts := l.envs.led(e)
			r.reward[at], r.ends[at], r.after[at], r.idle[at] = paid, end != goesOn, 0, !counts
			limits = limits || end == cut
			if r.earned[e] += float64(paid); end != goesOn {
				r.returns += r.earned[e]
				r.episodes++
				r.earned[e] = 0
			}
		}
		l.done++
		if limits {
			if err := l.judgeCut(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeCut evaluates the critic for the episodes that step t truncated. It restores the units
// afterwards.
func (l *learner) judgeCut(t int) error {
	r := &l.roll
	err := l.aside(func() error {
		l.envs.showLast(l.net.index, l.net.measured)
		return l.net.forward()
	})
	if err != nil {
		return err
	}
	for e := range l.Envs {
		if _, end, _ := l.envs.led(e); end == cut {
			r.after[e*r.steps+t] = l.net.outs[(e+1)*(l.actions+1)-1]
		}
	}
	return nil
}

// aside calls do and then restores the units.
func (l *learner) aside(do func() error) error {
	n := l.net
	if err := n.act.ReadBatch(n.actState, l.boxAside); err != nil {
		return err
	}
	return errors.Join(do(), n.act.WriteBatch(n.actState, l.boxAside))
}

// draw samples an action with a random number in [0, 1). It stores the logarithms of all
// probabilities.
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

// spreadFloor is added to the standard deviation that advantages are divided by. Before the first
// reward, advantages consist of the critic's error alone, which would otherwise outweigh the
// entropy bonus.
const spreadFloor = 0.02

// advantages computes the advantages (generalized advantage estimation) and the critic's targets.
// The values extend one step beyond the rollout.
func (r *rollout) advantages(s *Settings) {
	var sum, squares float64
	n := 0.0
	for e := range r.envs {
		v, carried := r.value[e*(r.steps+1):][:r.steps+1], 0.0
		for t := r.steps - 1; t >= 0; t-- {
			at, after := e*r.steps+t, float64(v[t+1])
			m := r.sample[4*at:][:4]
			if r.idle[at] {
				m[2], m[3] = 0, v[t]
				continue
			}
			if r.ends[at] {
				after, carried = float64(r.after[at]), 0
			}
			carried = float64(r.reward[at]) + s.Discount*after - float64(v[t]) + s.Discount*s.Lambda*carried
			m[2], m[3] = float32(carried), float32(carried)+v[t]
			sum += carried
			squares += carried * carried
			n++
		}
	}
	n = max(1, n)
	mean := sum / n
	spread := math.Sqrt(max(0, squares/n-mean*mean)) + spreadFloor
	for at := range r.envs * r.steps {
		if m := r.sample[4*at:][:4]; !r.idle[at] {
			m[2] = float32((float64(m[2]) - mean) / spread)
		}
	}
}

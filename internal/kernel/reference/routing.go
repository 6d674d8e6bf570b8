package reference

import (
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// Routes are a rollout's results for one instance: a row a start.
type Routes[F Float] struct {
	Actions                  [][]int32
	Steps                    []int32
	Length, LogProb, Entropy []F
}

// Uniform is the number that step t of start s of an instance draws.
func Uniform(seed, instance uint64, s, t int, purpose rng.Purpose) float32 {
	return rng.Float(rng.At(seed, instance, uint32(s)<<16|uint32(t/4), purpose)[t%4])
}

// Rollout is kernel.Rollout for one instance of global index `instance`.
func Rollout[F Float](r Routes[F], d *Decoder[F], o *kernel.Rollout, instance uint64) {
	for s, actions := range r.Actions {
		tour := d.Depart()
		if o.Viewed {
			tour.View(s + 1)
		}
		var length, logProb, entropy F
		t := 0
		for ; !tour.Done() && t < len(actions); t++ {
			switch {
			case t == 0 && o.Forced:
				if o.Choice != kernel.Replay {
					actions[0] = int32(tour.begin(s + 1))
				}
			case o.Choice == kernel.Extend && actions[t] >= 0:
				if !slices.Contains(tour.Allowed(), int(actions[t])) {
					panic("reference: an action to extend is forbidden")
				}
			case tour.stuck():
				actions[t] = -1
			default:
				step := d.Decide(tour)
				i := choose(&step, actions[t], o, instance, s, t)
				actions[t] = int32(step.Allowed[i])
				logProb += step.LogProb[i]
				entropy += step.Entropy
			}
			if actions[t] < 0 { // nowhere to go
				actions[t] = 0
				break
			}
			length = visit(d, tour, int(actions[t]), length)
		}
		length = finish(tour, length)
		if o.Choice != kernel.Replay {
			clear(actions[t:])
		}
		r.Steps[s], r.Length[s], r.LogProb[s] = int32(t), length, logProb
		r.Entropy[s] = entropy / F(Scored(int32(t), o.Forced))
	}
}

// choose returns the position in step.Allowed of the next node.
func choose[F Float](step *Decision[F], recorded int32, o *kernel.Rollout, instance uint64, s, t int) int {
	switch {
	case o.Choice == kernel.Replay:
		i := slices.Index(step.Allowed, int(recorded))
		if i < 0 {
			panic("reference: a replayed action is forbidden")
		}
		return i
	case len(step.Allowed) == 1:
		return 0
	case o.Choice == kernel.Greedy || o.Choice == kernel.Extend:
		return step.greedy()
	default:
		return step.sample(F(Uniform(o.Seed, instance, s, t, o.Purpose)))
	}
}

// RolloutGrad is kernel.RolloutGrad for one instance. entropy is the control block's coefficient.
func RolloutGrad[F Float](g DecoderGrad[F], d *Decoder[F], actions [][]int32, steps []int32, adv []F, o *kernel.RolloutGrad, entropy F) {
	for s := range actions {
		tour := d.Depart()
		if o.Viewed {
			tour.View(s + 1)
		}
		wEnt := -entropy * F(o.Weight) / F(Scored(steps[s], o.Forced))
		for t := range int(steps[s]) {
			action := int(actions[s][t])
			if t > 0 || !o.Forced {
				step := d.Decide(tour)
				d.grad(g, tour, &step, slices.Index(step.Allowed, action), adv[s], wEnt)
			}
			tour.Visit(action)
		}
	}
}

// Advantage is kernel.Advantage for one row, with a running baseline of so many batches; returns
// the baseline. lengths and logProbs are those of the row's group, of which its own begin at first.
func Advantage[F Float](adv, lengths, logProbs []F, first int, base F, o *kernel.Advantage, running, count float64) F {
	length := lengths[first:][:len(adv)]
	starting := o.Mode == kernel.Running && count == 0
	switch {
	case o.Mode == kernel.SharedMean || starting:
		base = 0
		for _, v := range length {
			base += v / F(len(length))
		}
	case o.Mode == kernel.Running:
		base = F(running)
	}
	if starting {
		clear(adv)
		return base
	}
	for s, v := range length {
		adv[s] = v - base
	}
	switch o.By {
	case kernel.Standard:
		var sum F
		for _, v := range adv {
			sum += v * v / F(len(adv))
		}
		for s := range adv {
			adv[s] /= F(math.Sqrt(float64(sum))) + kernel.SpreadFloor
		}
	case kernel.Preference:
		for i := range adv {
			adv[i] = F(o.Alpha) / F(len(lengths)) * preferred(lengths, logProbs, first, len(adv), first+i, o)
		}
	}
	for s := range adv {
		adv[s] *= F(o.Weight)
	}
	return base
}

// preferred adds up how far route i of a group should become less likely beside the shorter ones,
// and more likely beside the longer ones. Its row's routes are the starts from first on.
func preferred[F Float](length, logProb []F, first, starts, i int, o *kernel.Advantage) (sum F) {
	sigma := func(x F) F { return F(1 / (1 + math.Exp(-float64(x)))) }
	alpha := F(o.Alpha)
	group, row := leaders(length, o), leaders(length[first:][:starts], o)
	for j := range length {
		w := F(1)
		if group.leads(length[i]) || group.leads(length[j]) {
			w += group.weight
		}
		if within := j >= first && j < first+starts; o.Rows() > 1 && within && (row.leads(length[i]) || row.leads(length[j])) {
			w += row.weight
		}
		switch {
		case length[i]-length[j] > kernel.Tie*abs(length[i]):
			sum += w * sigma(alpha*(logProb[i]-logProb[j]))
		case length[j]-length[i] > kernel.Tie*abs(length[j]):
			sum -= w * sigma(alpha*(logProb[j]-logProb[i]))
		}
	}
	return sum
}

// leading is the shortest of some lengths, and what a pair with a route of that length weighs more.
type leading[F Float] struct{ best, weight F }

func (l leading[F]) leads(length F) bool { return length-l.best <= kernel.Tie*abs(length) }

func leaders[F Float](length []F, o *kernel.Advantage) leading[F] {
	l := leading[F]{slices.Min(length), F(o.Leader)}
	count := 0
	for _, v := range length {
		if l.leads(v) {
			count++
		}
	}
	if o.Alone && count > 1 {
		l.weight = 0
	}
	if o.Margin > 0 {
		l.weight *= margins(length, l, F(o.Margin))
	}
	return l
}

// margins is how many margins the shortest of some lengths is shorter than the next. Where there is
// none, no pair has a leader.
func margins[F Float](length []F, l leading[F], margin F) F {
	next := F(math.Inf(1))
	for _, v := range length {
		if !l.leads(v) {
			next = min(next, v)
		}
	}
	return min(kernel.MostMargins, (next-l.best)/(margin*abs(l.best)))
}

func abs[F Float](x F) F { return F(math.Abs(float64(x))) }

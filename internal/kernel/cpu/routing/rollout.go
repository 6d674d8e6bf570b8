package routing

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
	"haul/internal/rng"
)

// roll is one rollout op bound to memory. All starts of an instance advance in step, so their
// queries form a matrix; rows with one node left to go to are moved without computing anything.
type roll struct {
	decoder
	o                                        *kernel.Rollout
	actions, steps, length, logProb, entropy run.Ref
	instances, starts, limit                 int
	blocks                                   []block // by worker
}

func rollout(b *run.Binder, o *kernel.Rollout) func(*run.Worker) {
	r := &roll{decoder: newDecoder(b, &o.Decoder), o: o, actions: b.Ref(o.Actions), steps: b.Ref(o.Steps),
		length: b.Ref(o.Length), logProb: b.Ref(o.LogProb), entropy: b.Ref(o.Entropy)}
	r.instances, r.starts, r.limit, _, _ = o.Dims()
	r.blocks = make([]block, b.Runner.Device.Workers)
	b.Need(r.blockFloats(), r.blockWords()+DecodeRows*r.words)
	return r.run
}

func (r *roll) run(w *run.Worker) {
	k := &r.blocks[w.ID]
	*k, _ = r.carve(w)
	for i := range r.instances {
		r.open(w, k, i)
		for s := 0; s < r.starts; s += DecodeRows {
			r.decode(w, k, i, s, min(DecodeRows, r.starts-s))
		}
	}
}

// decode builds the routes of `count` starts of instance i, from start s0 on.
func (r *roll) decode(w *run.Worker, k *block, i, s0, count int) {
	var fleet [DecodeRows]vehicle
	var live, asked [DecodeRows]int // rows still going; rows whose choice is computed, by block row
	served := w.Words[r.blockWords():]
	for j := range count {
		live[j] = j
		fleet[j].depart(k.in, served[j*r.words:][:r.words], j)
		if r.o.Viewed {
			fleet[j].view(s0 + j + 1)
		}
	}
	at := i*r.starts + s0
	actions := isa.Ints(r.actions.Of(w))[at*r.limit:][:count*r.limit]
	steps := isa.Ints(r.steps.Of(w))[at:][:count]
	length, logProb, entropy := r.length.Of(w)[at:][:count], r.logProb.Of(w)[at:][:count], r.entropy.Of(w)[at:][:count]
	clear(length)
	clear(logProb)
	clear(entropy)
	clear(steps)
	if r.o.Choice != kernel.Replay && r.o.Choice != kernel.Extend {
		clear(actions)
	}
	index := w.First + uint64(w.Row+i)
	mult := kernel.Clip / w.Control.Temperature
	var draws [DecodeRows]draw
	going := count
	for t := 0; t < r.limit && going > 0 && !w.Stopped(); t++ {
		rows := 0
		for _, j := range live[:going] {
			v := &fleet[j]
			if r.o.Forced && t == 0 {
				if r.o.Choice != kernel.Replay {
					actions[j*r.limit] = v.begin(s0+j+1, k.mask[:r.words], k.in)
				}
				continue
			}
			if r.o.Choice == kernel.Extend && actions[j*r.limit+t] >= 0 {
				continue
			}
			mask := k.mask[rows*r.words:][:r.words]
			n, only := v.allow(mask, k.in)
			if n == 0 && r.machines != nil { // a file's rules allow no node
				n, only = 1, -1
			}
			if n == 1 {
				actions[j*r.limit+t] = only
				continue
			}
			r.query(w, k, rows, v)
			asked[rows] = j
			rows++
		}
		if rows > 0 {
			r.forward(w, k, rows, mult)
			for row, j := range asked[:rows] {
				a := r.choose(k, row, actions[j*r.limit+t], &draws[j], index, s0+j, t)
				actions[j*r.limit+t] = a
				logProb[j] += k.lp[row*r.ld+int(a)]
				entropy[j] += k.ent[row]
			}
		}
		left := 0
		for _, j := range live[:going] {
			v, a := &fleet[j], actions[j*r.limit+t]
			if a < 0 { // nowhere to go
				actions[j*r.limit+t] = 0
				length[j] = v.strand(k.in)
				continue
			}
			length[j] = v.drive(a, k.in, k.posX, k.posY, length[j])
			steps[j]++
			if !v.ended() {
				live[left] = j
				left++
			}
		}
		going = left
	}
	if r.machines != nil && !w.Stopped() {
		for _, j := range live[:going] { // their steps are used up
			length[j] = fleet[j].strand(k.in)
		}
	}
	for j := range count {
		entropy[j] /= float32(scored(steps[j], r.o.Forced))
		if r.o.Choice == kernel.Extend {
			clear(actions[j*r.limit+int(steps[j]) : (j+1)*r.limit])
		}
	}
}

// draw is the random words of four steps of a start.
type draw struct {
	words [4]uint32
	until int // the step behind the last of them
}

// at is the word of step t.
func (d *draw) at(r *roll, index uint64, start, t int) uint32 {
	if t >= d.until {
		d.words, d.until = rng.At(r.o.Seed, index, uint32(start)<<16|uint32(t/4), r.o.Purpose), t/4*4+4
	}
	return d.words[t%4]
}

// choose picks the next node of a block row.
func (r *roll) choose(k *block, row int, recorded int32, d *draw, index uint64, start, t int) int32 {
	p := k.p[row*r.ld:][:r.n]
	switch r.o.Choice {
	case kernel.Replay:
		return recorded
	case kernel.Greedy, kernel.Extend:
		best := 0
		for j, v := range p {
			if v > p[best] {
				best = j
			}
		}
		return int32(best)
	}
	u := rng.Float(d.at(r, index, start, t))
	var total float32
	for _, v := range p {
		total += v
	}
	edge, sum, last := u*total, float32(0), 0
	for j, v := range p {
		if v > 0 {
			sum += v
			last = j
			if sum > edge {
				break
			}
		}
	}
	return int32(last)
}

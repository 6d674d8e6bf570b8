package optimizer

import (
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

// term is one term of a sum, its places resolved.
type term struct {
	kernel.Term
	x, y        column
	coefficient int
	place       int // among the terms of its tally
}

// column is a tensor of a tally: element c of instance b. One column holds for all.
type column struct {
	floats       []float32
	whole        bool // integers
	stride, step int
}

func columnOf(b *run.Binder, t *kernel.Tensor) column {
	if t == nil {
		return column{}
	}
	root, at := t.Root(), 0
	if t.Parent != nil {
		at = t.Offset
	}
	c := column{floats: b.Runner.Batch[root][at:], whole: t.Type == kernel.I32, stride: t.Stride}
	if t.Cols() > 1 {
		c.step = 1
	}
	return c
}

// tally adds the rows to the sums of their lanes, term by term, each in the order of the rows. A
// sum of plain terms runs on from step to step; any other is made for the step first, over all of
// its turns. Lanes are added up when somebody asks for the sums.
func tally(b *run.Binder, o *kernel.Tally) func() {
	r := b.Runner
	columns := o.Columns()
	places, all, most := make([]int, len(o.Sums)), make([][]term, len(o.Sums)), 0
	for i, s := range o.Sums {
		places[i] = slices.Index(r.Sums.Names, s.Name)
		for _, t := range s.Terms {
			all[i] = append(all[i], term{Term: t, x: columnOf(b, t.X), y: columnOf(b, t.Y), coefficient: slices.Index(r.Coefficients, t.Coefficient), place: most})
			most++
		}
	}
	turns := make([][]float64, r.Lanes) // by lane and term: the rows of the step so far
	for lane := range turns {
		turns[lane] = make([]float64, most)
	}
	run := func() {
		for lane, sums := range r.Sums.Lanes {
			from, to := r.LaneRows(lane)
			for i, terms := range all {
				if sum := &sums[places[i]]; len(terms) == 1 && terms[0].plain() {
					*sum = terms[0].sum(*sum, from, to, columns)
					continue
				}
				var sum float64
				for k := range terms {
					sum += terms[k].of(r, &turns[lane][terms[k].place], from, to, columns)
				}
				if r.LastTurn() {
					sums[places[i]] += sum
				}
			}
		}
	}
	r.Between = append(r.Between, run)
	return run
}

// of is what the term's rows [from, to) add in a step, with those of its turns before, in so.
func (t *term) of(r *run.Runner, so *float64, from, to, columns int) float64 {
	if r.Turn == 0 {
		*so = 0
	}
	if t.X != nil {
		*so = t.sum(*so, from, to, columns)
	} else {
		*so += float64((to - from) * columns)
	}
	weight, sum := t.Weight, *so
	if t.coefficient >= 0 {
		weight *= float64(r.Control.Coefficients[t.coefficient])
	}
	sum *= weight
	if t.Mean {
		sum /= float64(r.Program.Total() * columns)
	}
	return sum
}

// plain tells that the term is nothing but the sum of its rows.
func (t *term) plain() bool {
	return t.X != nil && t.Weight == 1 && t.coefficient < 0 && !t.Mean
}

// sum adds the rows [from, to) to what is there.
func (t *term) sum(sum float64, from, to, columns int) float64 {
	x, y := &t.x, &t.y
	for b := from; b < to; b++ {
		for c := range columns {
			v := x.at(b, c)
			if t.Log {
				v = math.Log(v)
			}
			if t.Y != nil {
				v *= y.at(b, c)
			}
			sum += v
		}
	}
	return sum
}

func (c *column) at(row, column int) float64 {
	v := c.floats[row*c.stride+column*c.step]
	if c.whole {
		return float64(int32(math.Float32bits(v)))
	}
	return float64(v)
}

// runningMean moves the scalars, which the shards of the step have read by now. The mean is of all
// processes that share the step.
func runningMean(b *run.Binder, o *kernel.RunningMean) ([]*run.Phase, func()) {
	r := b.Runner
	x, columns, peer := columnOf(b, o.X), o.X.Cols(), peer(b)
	sums := make([]float64, r.Lanes)
	turn := func() {
		for lane := range sums {
			if r.Turn == 0 {
				sums[lane] = 0
			}
			from, to := r.LaneRows(lane)
			for b := from; b < to; b++ {
				for c := range columns {
					sums[lane] += x.at(b, c)
				}
			}
		}
	}
	r.Between = append(r.Between, turn)
	sum := func() float64 {
		turn()
		for _, a := range r.Adds {
			sums[a[0]] += sums[a[1]]
		}
		return sums[0]
	}
	move := func(sum float64) {
		mean, carried, count := sum/float64(r.Program.Total()*columns), &r.Scalar[o.Mean.Offset], &r.Scalar[o.Count.Offset]
		if *count == 0 {
			*carried = mean
		} else {
			*carried = o.Decay*(*carried) + (1-o.Decay)*mean
		}
		*count++
	}
	if peer == nil {
		return nil, func() { move(sum()) }
	}
	own := make([]float64, 1)
	return []*run.Phase{{Run: func(w *run.Worker, p *run.Phase) {
		if w.ID != 0 {
			return
		}
		own[0] = sum()
		if p.Err = peer.Sum(own); p.Err == nil {
			move(own[0])
		}
	}}}, nil
}

// peer is whom the program's gradient is exchanged with; nil for nobody.
func peer(b *run.Binder) kernel.Peer {
	for _, op := range b.Runner.Program.Once {
		if o, ok := op.(*kernel.Exchange); ok {
			return o.Peer
		}
	}
	return nil
}

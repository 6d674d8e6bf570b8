package cpu

import (
	"math"
	"slices"

	"haul/internal/kernel"
)

// term is one term of a sum, its places resolved.
type term struct {
	kernel.Term
	x, y        column
	coefficient int
}

// column is a tensor of a tally: element c of instance b. One column holds for all.
type column struct {
	floats       []float32
	whole        bool // integers
	stride, step int
}

func (b *binder) column(t *kernel.Tensor) column {
	if t == nil {
		return column{}
	}
	root, at := t.Root(), 0
	if t.Parent != nil {
		at = t.Offset
	}
	c := column{floats: b.r.batch[root][at:], whole: t.Type == kernel.I32, stride: t.Stride}
	if t.Cols() > 1 {
		c.step = 1
	}
	return c
}

// tally adds the batch's rows to the sums, term by term, each in the order of the rows. A sum of plain terms runs on from step to step;
// any other is made for the step first.
func (b *binder) tally(o *kernel.Tally) func() {
	r := b.r
	rows, columns := r.prog.Batch, o.Columns()
	places, all := make([]int, len(o.Sums)), make([][]term, len(o.Sums))
	for i, s := range o.Sums {
		places[i] = slices.Index(r.sums.names, s.Name)
		for _, t := range s.Terms {
			all[i] = append(all[i], term{Term: t, x: b.column(t.X), y: b.column(t.Y), coefficient: slices.Index(r.coefs, t.Coefficient)})
		}
	}
	return func() {
		for i, terms := range all {
			if sum := &r.sums.values[places[i]]; len(terms) == 1 && terms[0].plain() {
				*sum = terms[0].sum(*sum, rows, columns)
				continue
			}
			var sum float64
			for k := range terms {
				sum += terms[k].of(r, rows, columns)
			}
			r.sums.values[places[i]] += sum
		}
	}
}

// of is what the term adds in a step.
func (t *term) of(r *runner, rows, columns int) float64 {
	n := float64(rows * columns)
	weight, sum := t.Weight, n
	if t.X != nil {
		sum = t.sum(0, rows, columns)
	}
	if t.coefficient >= 0 {
		weight *= float64(r.ctl.coefficients[t.coefficient])
	}
	sum *= weight
	if t.Mean {
		sum /= n
	}
	return sum
}

// plain tells that the term is nothing but the sum of its rows.
func (t *term) plain() bool {
	return t.X != nil && t.Weight == 1 && t.coefficient < 0 && !t.Mean
}

// sum adds the rows to what is there.
func (t *term) sum(sum float64, rows, columns int) float64 {
	x, y := &t.x, &t.y
	for b := range rows {
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

// runningMean moves the scalars, which the shards of the step have read by now.
func (b *binder) runningMean(o *kernel.RunningMean) func() {
	r := b.r
	x, rows, columns := b.column(o.X), r.prog.Batch, o.X.Cols()
	return func() {
		var sum float64
		for b := range rows {
			for c := range columns {
				sum += x.at(b, c)
			}
		}
		mean, carried, count := sum/float64(rows*columns), &r.scalar[o.Mean.Offset], &r.scalar[o.Count.Offset]
		if *count == 0 {
			*carried = mean
		} else {
			*carried = o.Decay*(*carried) + (1-o.Decay)*mean
		}
		*count++
	}
}

package kernel

import "slices"

// Tally adds to the program's sums what the rows of a step hold. All tensors live in Batch space
// and have one column or as many as the widest: a row is one column of one instance, and a tensor
// of one column holds for all columns of its instance. Rows past the batch's end are not counted. A
// column of a wider tensor is a view of it.
//
// Every sum is made in float64: over the rows of the step in a fixed order, then its terms in
// theirs, then added to what earlier steps left.
type Tally struct {
	Sums []Sum
}

// Sum is one named sum: what a step adds to Metrics.Sums.
type Sum struct {
	Name  string
	Terms []Term
}

// Term is Weight · coefficient · Σ over rows of x·Y, where x is X or its logarithm; with Mean,
// divided by the number of rows. Without X it is the number of rows, without Y the sum of x alone.
type Term struct {
	X, Y        *Tensor
	Log         bool
	Weight      float64
	Coefficient string // of the control block; "": none
	Mean        bool
}

// Sums that the engine itself reads where a program has them: together they say what an op whose
// work depends on its results, a Varying one, has done.
const (
	SumRows    = "rows"         // rows: instances times columns
	SumDecodes = "decode_steps" // decode steps that they took
)

// Varying is an op that does a number of steps per row which depends on what it computes.
type Varying interface {
	Op
	Expected() int64 // the steps per row that Cost assumes
	Fixed() int64    // what of its FLOPs no step adds to
}

// NewSum adds up x, or products of x and y where y is not nil.
func NewSum(name string, x, y *Tensor) Sum {
	return Sum{name, []Term{{X: x, Y: y, Weight: 1}}}
}

// Kind names the op.
func (o *Tally) Kind() string { return "tally" }

// Args visits the tensors, each once.
func (o *Tally) Args(f func(*Tensor, Access)) {
	var seen []*Tensor
	for _, t := range o.tensors() {
		if !slices.Contains(seen, t) {
			seen = append(seen, t)
			f(t, Read)
		}
	}
}

func (o *Tally) tensors() (out []*Tensor) {
	for _, s := range o.Sums {
		for _, t := range s.Terms {
			for _, x := range []*Tensor{t.X, t.Y} {
				if x != nil {
					out = append(out, x)
				}
			}
		}
	}
	return out
}

// Columns is how many rows an instance has.
func (o *Tally) Columns() int {
	n := 1
	for _, t := range o.tensors() {
		n = max(n, t.Cols())
	}
	return n
}

// Coefficients names what the op reads of the control block.
func (o *Tally) Coefficients() (names []string) {
	for _, s := range o.Sums {
		for _, t := range s.Terms {
			if t.Coefficient != "" {
				names = append(names, t.Coefficient)
			}
		}
	}
	return names
}

// Cost counts nothing worth the name.
func (o *Tally) Cost() Cost { return Cost{0, bytesOf(o)} }

// RunningMean carries the mean of X, a Batch tensor, from step to step: the first step sets Mean,
// then Mean = Decay·Mean + (1-Decay)·mean of the step. Count is how many steps are in it. An op
// that reads them in the step sees what the step before left.
type RunningMean struct {
	Mean, Count *Tensor // Scalar space
	X           *Tensor
	Decay       float64
}

// Kind names the op.
func (o *RunningMean) Kind() string { return "mean.running" }

// Args visits the tensors.
func (o *RunningMean) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.X)
	visit(f, Update, o.Mean, o.Count)
}

// Cost counts nothing worth the name.
func (o *RunningMean) Cost() Cost { return Cost{int64(o.X.Len()), bytesOf(o)} }

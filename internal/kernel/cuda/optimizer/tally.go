package optimizer

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// The flags of a term in src/tally.cu.
const (
	termLog = 1 << iota
	termMean
	termIntX
	termIntY
)

const tallyThreads = 1024 // threads of src/tally.cu

func advantage(b *bind.Binder, o *kernel.Advantage) ([]bind.Launch, error) {
	instances, starts := o.Adv.Shape[0], o.Adv.Shape[1]
	lanes := 32 * min(bind.Ceil(starts, 32), 4)
	each := 128 / lanes // instances of a block
	return []bind.Launch{{Module: "tally", Kernel: "advantage", Grid: bind.Dim3{bind.Ceil(instances, each), 1, 1}, Block: bind.Dim3{each * lanes, 1, 1},
		Args: []any{b.Addr(o.Adv), b.Addr(o.Length), b.Addr(o.LogProb), b.Addr(o.Base), b.Addr(o.Mean), b.Addr(o.Count), bind.I32(instances), bind.I32(starts),
			bind.I32(lanes), bind.I32(int(o.Mode)), bind.I32(int(o.By)), o.Alpha, float32(kernel.SpreadFloor), float32(kernel.Tie), o.Weight, o.Leader,
			bind.Flag(o.Alone), o.Margin, float32(kernel.MostMargins), bind.I32(o.Rows())}}}, nil
}

// tally is one block per sum, which adds up a few ten thousand rows in a fixed order. What the sums
// are lies in a table on the card.
func tally(b *bind.Binder, o *kernel.Tally) ([]bind.Launch, error) {
	if len(o.Sums) == 0 {
		return nil, nil
	}
	var sums, terms []byte
	count := 0
	for _, s := range o.Sums {
		sums = binary.NativeEndian.AppendUint32(sums, uint32(count))
		count += len(s.Terms)
		sums = binary.NativeEndian.AppendUint32(sums, uint32(count))
		for _, t := range s.Terms {
			terms = appendTerm(b, terms, t)
		}
	}
	columns := o.Columns()
	return []bind.Launch{{Module: "tally", Kernel: "tally", Grid: bind.Dim3{len(o.Sums), 1, 1}, Block: bind.Dim3{tallyThreads, 1, 1},
		Args: []any{b.Metrics, b.Control, b.Table(sums), b.Table(terms), bind.I32(slices.Index(b.Sums, o.Sums[0].Name)), bind.I32(b.Batch * columns), bind.I32(columns)}}}, nil
}

// appendTerm is struct Term of src/tally.cu.
func appendTerm(b *bind.Binder, to []byte, t kernel.Term) []byte {
	var flags uint32
	for f, set := range map[uint32]bool{termLog: t.Log, termMean: t.Mean, termIntX: integers(t.X), termIntY: integers(t.Y)} {
		if set {
			flags |= f
		}
	}
	for _, x := range []*kernel.Tensor{t.X, t.Y} {
		row, step := 0, 0
		if x != nil {
			row = x.Stride
			if x.Cols() > 1 {
				step = 1
			}
		}
		to = binary.NativeEndian.AppendUint64(to, b.Addr(x))
		to = binary.NativeEndian.AppendUint32(to, uint32(row))
		to = binary.NativeEndian.AppendUint32(to, uint32(step))
	}
	weight := t.Weight
	if t.Mean {
		weight /= float64(b.Parts) // of the rows of the whole step
	}
	to = binary.NativeEndian.AppendUint64(to, math.Float64bits(weight))
	to = binary.NativeEndian.AppendUint32(to, uint32(b.Coefficient(t.Coefficient)))
	return binary.NativeEndian.AppendUint32(to, flags)
}

func integers(t *kernel.Tensor) bool { return t != nil && t.Type == kernel.I32 }

func runningMean(b *bind.Binder, o *kernel.RunningMean) ([]bind.Launch, error) {
	if b.Parts > 1 {
		return nil, fmt.Errorf("%s: this step is cut, among GPUs or into parts, and the mean over all of its rows is not exchanged: use another baseline", o.Kind())
	}
	return []bind.Launch{{Module: "tally", Kernel: "running_mean", Grid: bind.Dim3{1, 1, 1}, Block: bind.Dim3{tallyThreads, 1, 1},
		Args: []any{b.Addr(o.Mean), b.Addr(o.Count), b.Addr(o.X), math.Float64bits(o.Decay), bind.I32(b.Batch * o.X.Cols())}}}, bind.Dense(o, o.X)
}

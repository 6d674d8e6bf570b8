package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"haul/internal/kernel"
)

// The flags of a term in src/tally.cu.
const (
	termLog = 1 << iota
	termMean
	termIntX
	termIntY
)

const tallyThreads = 1024 // threads of src/tally.cu

func (b *binder) advantage(o *kernel.Advantage) ([]launch, error) {
	instances, starts := o.Adv.Shape[0], o.Adv.Shape[1]
	lanes := 32 * min(ceil(starts, 32), 4)
	each := 128 / lanes // instances of a block
	return []launch{{module: "tally", kernel: "advantage", grid: dim3{ceil(instances, each), 1, 1}, block: dim3{each * lanes, 1, 1},
		args: []any{b.addr(o.Adv), b.addr(o.Length), b.addr(o.LogProb), b.addr(o.Base), b.addr(o.Mean), b.addr(o.Count), i32(instances), i32(starts),
			i32(lanes), i32(int(o.Mode)), i32(int(o.By)), o.Alpha, float32(kernel.SpreadFloor), float32(kernel.Tie), o.Weight, o.Leader,
			flag(o.Alone), o.Margin, float32(kernel.MostMargins), i32(o.Rows())}}}, nil
}

// tally is one block per sum, which adds up a few ten thousand rows in a fixed order. What the sums
// are lies in a table on the card.
func (b *binder) tally(o *kernel.Tally) ([]launch, error) {
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
			terms = b.appendTerm(terms, t)
		}
	}
	columns := o.Columns()
	return []launch{{module: "tally", kernel: "tally", grid: dim3{len(o.Sums), 1, 1}, block: dim3{tallyThreads, 1, 1},
		args: []any{b.metrics, b.control, b.table(sums), b.table(terms), i32(slices.Index(b.sums, o.Sums[0].Name)), i32(b.batch * columns), i32(columns)}}}, nil
}

// appendTerm is struct Term of src/tally.cu.
func (b *binder) appendTerm(to []byte, t kernel.Term) []byte {
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
		to = binary.NativeEndian.AppendUint64(to, b.addr(x))
		to = binary.NativeEndian.AppendUint32(to, uint32(row))
		to = binary.NativeEndian.AppendUint32(to, uint32(step))
	}
	weight := t.Weight
	if t.Mean {
		weight /= float64(b.parts) // of the rows of the whole step
	}
	to = binary.NativeEndian.AppendUint64(to, math.Float64bits(weight))
	to = binary.NativeEndian.AppendUint32(to, uint32(b.coefficient(t.Coefficient)))
	return binary.NativeEndian.AppendUint32(to, flags)
}

func integers(t *kernel.Tensor) bool { return t != nil && t.Type == kernel.I32 }

func (b *binder) runningMean(o *kernel.RunningMean) ([]launch, error) {
	if b.parts > 1 {
		return nil, fmt.Errorf("%s: this step is cut, among GPUs or into parts, and the mean over all of its rows is not exchanged: use another baseline", o.Kind())
	}
	return []launch{{module: "tally", kernel: "running_mean", grid: dim3{1, 1, 1}, block: dim3{tallyThreads, 1, 1},
		args: []any{b.addr(o.Mean), b.addr(o.Count), b.addr(o.X), math.Float64bits(o.Decay), i32(b.batch * o.X.Cols())}}}, dense(o, o.X)
}

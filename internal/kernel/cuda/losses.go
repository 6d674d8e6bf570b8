package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

const (
	lossThreads  = 128 // threads of src/sequence/losses.cu
	lossHeads    = 4   // its mostHeads
	regionWarps  = 4   // warps of src/sequence/regions.cu
	regionFields = 8   // fields that it takes, a byte of a word each
)

func (b *binder) crossEntropy(o *kernel.CrossEntropy) ([]launch, error) {
	if len(o.Columns) > lossHeads {
		return nil, fmt.Errorf("%s: %d classifiers, the GPU takes at most %d", o.Kind(), len(o.Columns), lossHeads)
	}
	if o.Weigh != nil {
		return nil, fmt.Errorf("%s: the GPU weighs no token unlike another", o.Kind())
	}
	instances, tokens, c := o.Logits.Shape[0], o.Logits.Shape[1], o.Logits.Shape[2]
	args := []any{b.addr(o.DLogits), b.addr(o.Logits), b.addr(o.Labels), b.addr(o.Sums), i32(tokens), i32(c), i32(len(o.Columns))}
	var columns [lossHeads]int
	copy(columns[:], o.Columns)
	for _, n := range columns {
		args = append(args, i32(n))
	}
	return []launch{{module: "losses", kernel: "crossentropy", grid: dim3{instances, 1, 1}, block: dim3{lossThreads, 1, 1},
		args: append(args, o.Smoothing, o.Weight)}}, dense(o, o.DLogits, o.Logits)
}

func (b *binder) ppo(o *kernel.PPO) ([]launch, error) {
	rows := o.Out.Rows()
	return []launch{{module: "losses", kernel: "ppo", grid: dim3{ceil(rows, lossThreads), 1, 1}, block: dim3{lossThreads, 1, 1},
		args: []any{b.addr(o.DOut), b.addr(o.Out), b.addr(o.Sample), b.addr(o.Sums), i32(rows), i32(o.Tokens()), i32(o.Out.Cols() - 1), o.Clip, o.ValueCoef,
			o.EntropyCoef, o.Weight}}}, dense(o, o.DOut, o.Out)
}

func (b *binder) regions(o *kernel.Regions) ([]launch, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Unequal != nil || o.Stride() > kernel.DrawnWords || len(o.Fields) > regionFields {
		return nil, fmt.Errorf("%s: %d fields of records of %d words, the GPU draws rows of at most %d from records of at most %d in equal episodes: feed it from the host", o.Kind(), len(o.Fields), o.Stride(), regionFields, kernel.DrawnWords)
	}
	var later kernel.Later
	if o.Later != nil {
		later = *o.Later
	}
	rows, choices := o.First.Shape[0], (o.Longest-o.Shortest)/o.Horizon+1
	pieces := 1 // warps of a row; a label that depends on tokens before it wants them in order
	if o.Later == nil {
		pieces = max(1, min(ceil(o.Tokens, 32), 16*b.sms/rows))
	}
	var fields uint64
	for i, f := range o.Fields {
		fields |= uint64(fieldCode(f)) << (8 * i)
	}
	return []launch{{module: "regions", kernel: "regions", grid: dim3{ceil(rows, regionWarps), pieces, 1}, block: dim3{32 * regionWarps, 1, 1},
		args: []any{b.addr(o.Index), b.addr(o.Labels), b.addr(o.First), b.addr(o.Records), b.state, o.Seed, uint32(o.Purpose), i32(rows),
			uint32(o.Streams), i32(o.Steps), i32(o.Horizon), i32(o.Tokens), flag(o.Compressed), i32(o.Shortest), i32(choices), i32(o.Ahead),
			fields, i32(len(o.Fields)), fieldCode(o.Label), i32(o.Stride()), flag(o.Later != nil),
			fieldCode(kernel.Field{Byte: later.Paid, Last: true}), fieldCode(kernel.Field{Byte: later.Label}), i32(pieces)}}}, nil
}

// fieldCode is a field as src/regions.cu takes it.
func fieldCode(f kernel.Field) uint32 {
	code := uint32(8*(f.Byte%4) + f.Byte/4<<6)
	if f.Last {
		code |= 32
	}
	return code
}

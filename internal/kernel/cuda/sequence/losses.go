package sequence

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

const (
	lossThreads  = 128 // threads of src/losses.cu
	lossHeads    = 4   // its mostHeads
	regionWarps  = 4   // warps of src/regions.cu
	regionFields = 8   // fields that it takes, a byte of a word each
)

func crossEntropy(b *bind.Binder, o *kernel.CrossEntropy) ([]bind.Launch, error) {
	if len(o.Columns) > lossHeads {
		return nil, fmt.Errorf("%s: %d classifiers, the GPU takes at most %d", o.Kind(), len(o.Columns), lossHeads)
	}
	if o.Weigh != nil {
		return nil, fmt.Errorf("%s: the GPU weighs no token unlike another", o.Kind())
	}
	instances, tokens, c := o.Logits.Shape[0], o.Logits.Shape[1], o.Logits.Shape[2]
	args := []any{b.Addr(o.DLogits), b.Addr(o.Logits), b.Addr(o.Labels), b.Addr(o.Sums), bind.I32(tokens), bind.I32(c), bind.I32(len(o.Columns))}
	var columns [lossHeads]int
	copy(columns[:], o.Columns)
	for _, n := range columns {
		args = append(args, bind.I32(n))
	}
	return []bind.Launch{{Module: "losses", Kernel: "crossentropy", Grid: bind.Dim3{instances, 1, 1}, Block: bind.Dim3{lossThreads, 1, 1},
		Args: append(args, o.Smoothing, o.Weight)}}, bind.Dense(o, o.DLogits, o.Logits)
}

func ppo(b *bind.Binder, o *kernel.PPO) ([]bind.Launch, error) {
	rows := o.Out.Rows()
	return []bind.Launch{{Module: "losses", Kernel: "ppo", Grid: bind.Dim3{bind.Ceil(rows, lossThreads), 1, 1}, Block: bind.Dim3{lossThreads, 1, 1},
		Args: []any{b.Addr(o.DOut), b.Addr(o.Out), b.Addr(o.Sample), b.Addr(o.Sums), bind.I32(rows), bind.I32(o.Tokens()), bind.I32(o.Out.Cols() - 1), o.Clip, o.ValueCoef,
			o.EntropyCoef, o.Weight}}}, bind.Dense(o, o.DOut, o.Out)
}

func regions(b *bind.Binder, o *kernel.Regions) ([]bind.Launch, error) {
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
		pieces = max(1, min(bind.Ceil(o.Tokens, 32), 16*b.SMs/rows))
	}
	var fields uint64
	for i, f := range o.Fields {
		fields |= uint64(fieldCode(f)) << (8 * i)
	}
	return []bind.Launch{{Module: "regions", Kernel: "regions", Grid: bind.Dim3{bind.Ceil(rows, regionWarps), pieces, 1}, Block: bind.Dim3{32 * regionWarps, 1, 1},
		Args: []any{b.Addr(o.Index), b.Addr(o.Labels), b.Addr(o.First), b.Addr(o.Records), b.State, o.Seed, uint32(o.Purpose), bind.I32(rows),
			uint32(o.Streams), bind.I32(o.Steps), bind.I32(o.Horizon), bind.I32(o.Tokens), bind.Flag(o.Compressed), bind.I32(o.Shortest), bind.I32(choices), bind.I32(o.Ahead),
			fields, bind.I32(len(o.Fields)), fieldCode(o.Label), bind.I32(o.Stride()), bind.Flag(o.Later != nil),
			fieldCode(kernel.Field{Byte: later.Paid, Last: true}), fieldCode(kernel.Field{Byte: later.Label}), bind.I32(pieces)}}}, nil
}

// fieldCode is a field as src/regions.cu takes it.
func fieldCode(f kernel.Field) uint32 {
	code := uint32(8*(f.Byte%4) + f.Byte/4<<6)
	if f.Last {
		code |= 32
	}
	return code
}

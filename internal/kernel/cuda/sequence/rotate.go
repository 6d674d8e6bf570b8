package sequence

import (
	"encoding/binary"
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// rotate reads the turns of every position from a table, whatever the two tensors are held in.
func rotate(b *bind.Binder, o *kernel.Rotate) ([]bind.Launch, error) {
	bits := func(t *kernel.Tensor) int {
		if b.Compact(t) {
			return 16
		}
		return 32
	}
	width, turned := o.Dims()
	sign := float32(1)
	if o.Back {
		sign = -1
	}
	l := bind.Each(fmt.Sprintf("rotate_%d_%d", bits(o.Y), bits(o.X)), o.X.Len(), b.Addr(o.Y), b.Addr(o.X), b.Addr(o.Index), turns(b, o, width),
		uint32(o.X.Len()), bind.I32(o.X.Cols()), bind.I32(turned), bind.I32(width), bind.I32(o.Index.Cols()), sign)
	l.Module = "rotate"
	return []bind.Launch{l}, bind.Dense(o, o.Y, o.X)
}

// turns are the cosines of each position's angles, then the sines, by heads' width; ops of one
// shape share them.
func turns(b *bind.Binder, o *kernel.Rotate, width int) uint64 {
	shape := [2]int{width, o.Positions}
	if at, ok := b.Rotations[shape]; ok {
		return at
	}
	var cosines, sines, data []byte
	for position := range o.Positions {
		cosines, sines = cosines[:0], sines[:0]
		for j := range width / 2 {
			sin, cos := math.Sincos(o.Angle(position, j, width))
			cosines = binary.LittleEndian.AppendUint32(cosines, math.Float32bits(float32(cos)))
			sines = binary.LittleEndian.AppendUint32(sines, math.Float32bits(float32(sin)))
		}
		data = append(append(data, cosines...), sines...)
	}
	if len(data) == 0 { // heads of one column: nothing turns
		return 0
	}
	b.Rotations[shape] = b.Table(data)
	return b.Rotations[shape]
}

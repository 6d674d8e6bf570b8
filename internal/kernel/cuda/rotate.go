package cuda

import (
	"encoding/binary"
	"fmt"
	"math"

	"haul/internal/kernel"
)

// rotate reads the turns of every position from a table, whatever the two tensors are held in.
func (b *binder) rotate(o *kernel.Rotate) ([]launch, error) {
	bits := func(t *kernel.Tensor) int {
		if b.compact(t) {
			return 16
		}
		return 32
	}
	width, turned := o.Dims()
	sign := float32(1)
	if o.Back {
		sign = -1
	}
	l := each(fmt.Sprintf("rotate_%d_%d", bits(o.Y), bits(o.X)), o.X.Len(), b.addr(o.Y), b.addr(o.X), b.addr(o.Index), b.turns(o, width),
		uint32(o.X.Len()), i32(o.X.Cols()), i32(turned), i32(width), i32(o.Index.Cols()), sign)
	l.module = "rotate"
	return []launch{l}, dense(o, o.Y, o.X)
}

// turns are the cosines of each position's angles, then the sines, by heads' width; ops of one
// shape share them.
func (b *binder) turns(o *kernel.Rotate, width int) uint64 {
	shape := [2]int{width, o.Positions}
	if at, ok := b.rotations[shape]; ok {
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
	b.rotations[shape] = b.table(data)
	return b.rotations[shape]
}

package host

import (
	"math/bits"

	"haul/internal/kernel"
)

// DropWord returns the draw of the call of Philox whose words have the random bits of columns
// 32·block to 32·block+31 of a row (kernel.Drop).
func DropWord(d kernel.Drop, row, block, width int) (draw uint32) {
	return uint32(d.Site)<<24 | uint32(row*((width+31)/32)+block)
}

// Keep decides about 32 elements at once: bit c is set where element c is kept, unless its number
// of 16 bits (kernel.Drop) lies below the threshold.
func Keep(threshold uint32, words [4]uint32) uint32 {
	keep := ^uint32(0)
	for b := range 16 {
		w := words[b%4]
		r := w
		switch b / 4 {
		case 0:
			r = bits.RotateLeft32(w, -16)
		case 1:
			r = bits.RotateLeft32(w, -24)
		case 2:
			r = bits.RotateLeft32(w, -8) ^ bits.RotateLeft32(words[(b+1)%4], -16)
		}
		if threshold>>b&1 != 0 {
			keep &= r
		} else {
			keep |= r
		}
	}
	return keep
}

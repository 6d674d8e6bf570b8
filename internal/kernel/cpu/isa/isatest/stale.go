// Package isatest holds what tests of primitives share: memory with guards, and numbers of bf16.
package isatest

import (
	"math"
	"unsafe"
)

// Stale is a buffer full of what must be overwritten.
func Stale(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = -1
	}
	return s
}

// Words32 views floats, which guarded hands out, as words.
func Words32(f []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

// Rounded is x to eight bits of significand, ties to even, worked out apart from the package's own
// conversion.
func Rounded(x float32) float64 {
	m, e := math.Frexp(float64(x))
	return math.Ldexp(math.RoundToEven(m*256)/256, e)
}

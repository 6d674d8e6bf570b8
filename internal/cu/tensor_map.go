package cu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// tensorMapCalls describe matrices to a card's copy engine: CUDA 12.0 or newer.
type tensorMapCalls struct {
	Encode uintptr `sym:"cuTensorMapEncodeTiled"`
}

// Matrix is a matrix of 16-bit floating-point numbers on the card, as its copy engine is to see it:
// `Box` rows and 64 columns at a time.
type Matrix struct {
	At         uint64 // of its first number, a multiple of 16
	Rows, Cols int
	Stride     int // numbers from row to row, a multiple of 8
	Box        int
	// the matrix is so many, one behind the other: 64 of its columns each, all of its rows; 0: it is
	// one of rows
	Blocks int
}

// CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_SWIZZLE_128B and
// CU_TENSOR_MAP_L2_PROMOTION_L2_128B.
const (
	mapBF16      = 9
	mapSwizzled  = 3
	mapPromotion = 2

	TileBytes  = 128 // of a description: CUtensorMap
	mapAligned = 64

	MatrixColumns = 64 // of a box
)

// Tiles is the description that a kernel gives the copy engine, for memory of the card at a
// multiple of 64 bytes. A box arrives as rows of 128 bytes in which vector q (eight numbers) of row
// r is at q ^ r%8; what lies outside the matrix is zeros. Inside Do.
func (c *Context) Tiles(m Matrix) ([]byte, error) {
	var calls tensorMapCalls
	if err := c.driver.bind(&calls); err != nil {
		return nil, fmt.Errorf("the copy engine takes a driver for CUDA 12.0 or newer: %w", err)
	}
	room := make([]byte, TileBytes+mapAligned)
	from := (mapAligned - int(uintptr(unsafe.Pointer(unsafe.SliceData(room)))%mapAligned)) % mapAligned
	out := room[from : from+TileBytes]
	dims, sizes, strides := 2, [3]uint64{uint64(m.Cols), uint64(m.Rows)}, [2]uint64{2 * uint64(m.Stride)}
	if m.Blocks > 0 {
		dims, sizes[0], sizes[2] = 3, MatrixColumns, uint64(m.Blocks)
		strides[0], strides[1] = 2*MatrixColumns, 2*MatrixColumns*uint64(m.Rows)
	}
	box, steps := [3]uint32{MatrixColumns, uint32(m.Box), 1}, [3]uint32{1, 1, 1}
	r, _, _ := purego.SyscallN(calls.Encode, uintptr(unsafe.Pointer(unsafe.SliceData(out))), mapBF16, uintptr(dims), uintptr(m.At),
		uintptr(unsafe.Pointer(&sizes)), uintptr(unsafe.Pointer(&strides)), uintptr(unsafe.Pointer(&box)), uintptr(unsafe.Pointer(&steps)),
		0, mapSwizzled, mapPromotion, 0)
	runtime.KeepAlive(room)
	return out, c.check("cuTensorMapEncodeTiled", Result(r))
}

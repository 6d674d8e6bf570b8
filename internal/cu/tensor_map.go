package cu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// tensorMapCalls holds the function that describes matrices to the copy engine: CUDA 12.0 or newer.
type tensorMapCalls struct {
	Encode uintptr `sym:"cuTensorMapEncodeTiled"`
}

// Matrix describes a matrix of bf16 numbers in device memory for the GPU's copy engine, which
// copies boxes of `Box` rows and 64 columns.
type Matrix struct {
	At         uint64 // address of the first number, a multiple of 16
	Rows, Cols int
	Stride     int // numbers from one row to the next, a multiple of 8
	Box        int
	// the matrix is stored as this number of consecutive blocks, each with 64 of the columns
	// and all rows; 0: it is stored by rows
	Blocks int
}

// CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_SWIZZLE_128B and
// CU_TENSOR_MAP_L2_PROMOTION_L2_128B.
const (
	mapBF16      = 9
	mapSwizzled  = 3
	mapPromotion = 2

	TileBytes  = 128 // size of a CUtensorMap
	mapAligned = 64

	MatrixColumns = 64 // columns of a box
)

// Tiles returns the description that a kernel passes to the copy engine. It must be copied to
// device memory at a multiple of 64 bytes. A box arrives as rows of 128 bytes: vector q (eight
// numbers) of row r is at q ^ r%8. Elements outside of the matrix are zero. It must run inside Do.
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

// Package safetensors reads and writes the safetensors format: eight bytes of header length, a
// JSON header that names every tensor with its type, shape and place, then the tensors' bytes.
//
// What a reader could break: nothing in a file is believed. Lengths are bounded before anything is
// allocated for them, the tensors must tile the data without a hole or an overlap, and a file
// that is one byte short or long is refused.
package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DType is the element type, by the format's own name.
type DType string

// The types that Haul writes. Files with other types are refused by name.
const (
	F32  DType = "F32"
	F64  DType = "F64"
	I32  DType = "I32"
	BF16 DType = "BF16" // the upper half of a float32
)

// Size is the bytes of an element, 0 for a type this package does not know.
func (d DType) Size() int {
	switch d {
	case BF16:
		return 2
	case F32, I32:
		return 4
	case F64:
		return 8
	}
	return 0
}

// Tensor is one named array. Data is little-endian and row-major.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
}

// File is the content of a safetensors file, its tensors in the order of their bytes.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor
	Summed   bool // it was read, and its bytes are those that were written
}

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	for _, t := range f.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}

// Float32s encodes v as a tensor.
func Float32s(name string, v []float32, shape ...int) Tensor {
	data := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(x))
	}
	return Tensor{Name: name, DType: F32, Shape: shape, Data: data}
}

// Float64s encodes v as a tensor.
func Float64s(name string, v []float64, shape ...int) Tensor {
	data := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(x))
	}
	return Tensor{Name: name, DType: F64, Shape: shape, Data: data}
}

// BFloat16s encodes v as a tensor of half the size, each number rounded to the nearest, to the even
// one of two.
func BFloat16s(name string, v []float32, shape ...int) Tensor {
	data := make([]byte, 2*len(v))
	for i, x := range v {
		u := math.Float32bits(x)
		if x == x { // a NaN stays one
			u += 0x7FFF + u>>16&1
		}
		binary.LittleEndian.PutUint16(data[2*i:], uint16(u>>16))
	}
	return Tensor{Name: name, DType: BF16, Shape: shape, Data: data}
}

// ReadFloat32s decodes a tensor of F32 or BF16 into dst, which must have its length.
func (t Tensor) ReadFloat32s(dst []float32) error {
	if t.DType == BF16 {
		if err := t.want(BF16, len(dst)); err != nil {
			return err
		}
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])) << 16)
		}
		return nil
	}
	if err := t.want(F32, len(dst)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return nil
}

// ReadFloat64s decodes the tensor into dst, which must have its length.
func (t Tensor) ReadFloat64s(dst []float64) error {
	if err := t.want(F64, len(dst)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(t.Data[8*i:]))
	}
	return nil
}

func (t Tensor) want(d DType, n int) error {
	if t.DType != d {
		return fmt.Errorf("%s is %s, not %s", t.Name, t.DType, d)
	}
	if len(t.Data) != n*d.Size() {
		return fmt.Errorf("%s has %d elements, not %d", t.Name, len(t.Data)/d.Size(), n)
	}
	return nil
}

// bytesOf is the size of a tensor, or false where a dimension is negative or the product overflows.
func bytesOf(d DType, shape []int) (int64, bool) {
	n := int64(d.Size())
	for _, s := range shape {
		switch {
		case s < 0:
			return 0, false
		case s > 0 && n > math.MaxInt64/int64(s):
			return 0, false
		}
		n *= int64(s)
	}
	return n, true
}

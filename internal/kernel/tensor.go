// Package kernel is the contract between a recorded step and the devices that run it: tensors,
// ops as data, and the program they form. The plain-Go meaning of every op is kernel/reference.
//
// What a reader could break: an op's struct is all that a backend sees. Whatever an op needs must
// be in it, and Args must name every tensor it touches with the right access, because the
// placement of memory trusts nothing else.
//
// Shape letters: B instances in a shard, N nodes in an instance, M = B·N rows, D width,
// H heads, S starts of an instance, T decode steps.
package kernel

import "fmt"

// Type is the element type of a tensor. Elements are four bytes wide, those of F64, which is for
// the Scalar space alone, eight.
type Type uint8

// The element types.
const (
	F32 Type = iota
	I32
	F64
)

// Space says where a tensor lives and for how long.
type Space uint8

// The spaces.
const (
	// activations of one shard: private to whoever runs it, reused by the next shard
	Shard Space = iota
	// one row per instance of the whole batch: survives the step, readable by the host
	Batch
	Weight // a parameter, in the flat buffer of weight set Set
	Grad   // a parameter's gradient, laid out as the weights
	// whole, the same for every shard: the host writes it before the first step, no op does
	Data
	// one F64, carried from step to step in State.Scalars by its name; Offset is its place there
	Scalar
)

// Tensor is a handle: a shape and a place. Offset counts elements from the start of its space; for
// a column view, from its parent's. The first dimension of a Shard or Batch tensor runs over the
// shard's instances, or over their rows; of a Batch tensor always over instances, and its buffer
// holds one such block per shard.
type Tensor struct {
	Name   string
	Type   Type
	Space  Space
	Set    int   // Weight only: which set: 0 is trained, the others are frozen
	Shape  []int // [rows..., columns]
	Offset int
	Stride int     // elements between rows of the last dimension; Cols() when dense
	Parent *Tensor // the tensor this one is a column view of, or nil
	ID     int     // unique in its program
	// Compact lets a device that multiplies in bf16 hold the elements in bf16 too; Shard space only.
	// Elsewhere it means nothing, so an op must give the same result within that rounding either way.
	Compact bool
}

// Len is the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, s := range t.Shape {
		n *= s
	}
	return n
}

// Cols is the last dimension.
func (t *Tensor) Cols() int { return t.Shape[len(t.Shape)-1] }

// Rows is the product of all dimensions but the last.
func (t *Tensor) Rows() int { return t.Len() / t.Cols() }

// Root is the tensor that owns the memory.
func (t *Tensor) Root() *Tensor {
	if t.Parent != nil {
		return t.Parent
	}
	return t
}

// Dense reports whether rows follow each other without a gap.
func (t *Tensor) Dense() bool { return t.Stride == t.Cols() }

// String names the tensor with its shape.
func (t *Tensor) String() string { return fmt.Sprintf("%s%v", t.Name, t.Shape) }

// Layout places named parameters in one flat buffer, in order, each starting at a multiple of 16
// elements; the gap holds zeros.
type Layout struct {
	Params []Param
	Len    int
}

// Init says how a parameter starts.
type Init uint8

// The ways to start.
const (
	InitUniform Init = iota // U(±1/sqrt(FanIn))
	InitZero
	InitOne
)

// Param is one named parameter.
type Param struct {
	Name   string
	Shape  []int
	Offset int
	FanIn  int
	Init   Init
}

// Len is the number of elements of the parameter.
func (p Param) Len() int {
	n := 1
	for _, s := range p.Shape {
		n *= s
	}
	return n
}

// Add appends a parameter and returns its index.
func (l *Layout) Add(name string, init Init, fanIn int, shape ...int) int {
	p := Param{Name: name, Shape: shape, Offset: l.Len, FanIn: fanIn, Init: init}
	l.Params = append(l.Params, p)
	l.Len = (l.Len + p.Len() + 15) &^ 15
	return len(l.Params) - 1
}

// Count is the number of learned elements, without padding.
func (l *Layout) Count() int {
	n := 0
	for _, p := range l.Params {
		n += p.Len()
	}
	return n
}

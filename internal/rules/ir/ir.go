// Package ir is the form into which the rules of a problem are compiled: straight-line code on
// 32-bit words in which every value is defined once and branches have become selects.
//
// lower writes it, eval runs it word by word, and the CPU's and the GPU's forms are made from it. A
// Func is a method of the rules; Split divides it by what its values depend on.
//
// Invariant: the operands of a value precede it.
package ir

import (
	"fmt"
	"strings"
)

// Source is where an input word comes from.
type Source uint8

// The sources.
const (
	Settings  Source = iota
	Instance         // words that all nodes of an instance share
	Vehicle          // state of a route
	At               // node where the vehicle stands
	To               // node that it may go to; of a method of Node, the node itself
	Depot            // node 0
	Count            // number of customers
	Unvisited        // number of customers that no route step has visited
	Random           // word k of the random words of the instance or node
	Prepared         // result k of the part of a split function that runs once per step
	Sources
)

var sourceNames = [Sources]string{"settings", "instance", "vehicle", "at", "to", "depot", "count", "unvisited", "random", "prepared"}

// String returns the source's name.
func (s Source) String() string { return sourceNames[s] }

// Word is one input word: word Index of a source.
type Word struct {
	Source Source
	Index  int32
	Kind   Kind
}

// Value is one operation. Unused operands are 0.
type Value struct {
	Op      Op
	A, B, C int32 // values that precede it
	Imm     uint32
}

// Operands returns the values that v reads.
func (v *Value) Operands() []int32 { return []int32{v.A, v.B, v.C}[:len(specs[v.Op].Args)] }

// Func is one method of the rules.
type Func struct {
	Name    string
	Inputs  []Word
	Values  []Value
	Outputs []int32 // values
}

// Depends returns, for each value, the set of sources that it depends on: bit s for source s.
func (f *Func) Depends() []uint32 {
	out := make([]uint32, len(f.Values))
	for i := range f.Values {
		v := &f.Values[i]
		if v.Op == Input {
			out[i] = 1 << f.Inputs[v.Imm].Source
		}
		for _, a := range v.Operands() {
			out[i] |= out[a]
		}
	}
	return out
}

// Cost returns the number of operations: values that are neither constants nor inputs.
func (f *Func) Cost() int {
	n := 0
	for _, v := range f.Values {
		if v.Op > Input {
			n++
		}
	}
	return n
}

// Reads reports which words of a source the function reads, in ascending order.
func (f *Func) Reads(s Source) []int32 {
	var out []int32
	for _, w := range f.Inputs {
		if w.Source == s {
			out = append(out, w.Index)
		}
	}
	return out
}

// String prints the function, a value per line.
func (f *Func) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "func %s\n", f.Name)
	for i := range f.Values {
		v := &f.Values[i]
		fmt.Fprintf(&b, "  v%d = %s", i, v.Op)
		switch v.Op {
		case Const:
			fmt.Fprintf(&b, " %#x", v.Imm)
		case Input:
			w := f.Inputs[v.Imm]
			fmt.Fprintf(&b, " %s[%d] %s", w.Source, w.Index, w.Kind)
		}
		for _, a := range v.Operands() {
			fmt.Fprintf(&b, " v%d", a)
		}
		b.WriteByte('\n')
	}
	b.WriteString("  return")
	for _, o := range f.Outputs {
		fmt.Fprintf(&b, " v%d", o)
	}
	b.WriteByte('\n')
	return b.String()
}

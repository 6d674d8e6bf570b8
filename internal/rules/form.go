package rules

import (
	"math"
	"slices"

	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// Frame is the words that a method reads, by source.
type Frame [ir.Sources][]uint32

// Form computes the methods of a problem. All forms of one problem return the same words, where all
// NaN count as one. A Form is used by one goroutine at a time.
type Form interface {
	// Call returns a method's outputs: its results, then the words that it may change. The slice is
	// valid until the next call.
	Call(m parse.Method, f *Frame) []uint32
	// Fits writes, for each node of an instance, whether Vehicle.Fits lets the vehicle of the frame go
	// there: bit j%64 of word j/64. Frame has all but the words of To. Amounts replace the nodes'
	// changing words, unless nil.
	Fits(f *Frame, in *Instance, amounts []uint32, mask []uint64)
}

// Instance is an instance's words.
type Instance struct {
	Customers int
	Words     []uint32
	Nodes     [][]uint32 // a column for each word of a node, padded to a multiple of 64 nodes
}

// Row writes the words of node j.
func (in *Instance) Row(to []uint32, j int) {
	for w, column := range in.Nodes {
		to[w] = column[j]
	}
}

// SetRow writes the words of node j into its columns.
func (in *Instance) SetRow(j int, row []uint32) {
	for w, column := range in.Nodes {
		column[j] = row[w]
	}
}

// Same reports whether two words are equal. All NaN of float32 words are.
func Same(kind ir.Kind, a, b uint32) bool {
	if a == b {
		return true
	}
	x, y := math.Float32frombits(a), math.Float32frombits(b)
	return kind == ir.Float32 && x != x && y != y
}

// Outputs returns how rules read each output of a method: its results, then the words that it may
// change.
func (p *Problem) Outputs(m parse.Method) []ir.Kind {
	var out []ir.Kind
	add := func(fields []parse.Field) {
		for _, f := range fields {
			out = append(out, f.Kind)
		}
	}
	switch m {
	case parse.Before, parse.DrawInstance, parse.After:
		add(p.Instance)
	case parse.DrawNode, parse.Derive:
		add(p.Node)
	case parse.Start:
		add(p.Vehicle)
	case parse.Fits, parse.Returns, parse.Stays, parse.Ended:
		out = append(out, ir.Bool)
	case parse.Stuck, parse.Move:
		out = append(out, ir.Float32)
	case parse.Features:
		out = slices.Repeat([]ir.Kind{ir.Float32}, p.File.Features)
	case parse.Context:
		out = slices.Repeat([]ir.Kind{ir.Float32}, p.File.Context)
	case parse.Steps:
		out = append(out, ir.Int32)
	}
	if m == parse.Move {
		add(p.Vehicle)
		if p.Amount >= 0 {
			out = append(out, ir.Int32)
		}
	}
	return out
}

package kernel

import "math"

// Drop says which elements of a tensor a dropout keeps. The mask is Philox by (global instance,
// Site, element), so that a gradient makes it again and nothing is stored.
type Drop struct {
	Rate  float32 // in steps of 2⁻¹⁶; 0: nothing is dropped
	Site  int     // which dropout of the model, below 256
	Nodes int     // rows per instance
	Seed  uint64
}

// Threshold is the rate in 65536ths, all of them excepted: an element is dropped when its 16 random
// bits lie below.
func (d Drop) Threshold() uint32 { return uint32(min(65535, math.Round(float64(d.Rate)*65536))) }

// Scale is what a kept element is multiplied by.
func (d Drop) Scale() float32 { return 65536 / float32(65536-d.Threshold()) }

// Call says where the 16 random bits of an element lie: in that half (0 low, 1 high) of that word
// of Philox(Seed, global instance, draw, rng.Dropout). Row counts the instance's rows, each of
// `width` columns. A call serves the eight elements of a row that one thread of a tensor core's
// result holds: columns 2t and 2t+1 of four groups of eight.
func (d Drop) Call(row, column, width int) (draw uint32, word, half int) {
	call := (row*((width+31)/32)+column/32)*4 + column%8/2
	return uint32(d.Site)<<24 | uint32(call), column % 32 / 8, column % 2
}

// Numbered tells whether every element of so many rows per instance has bits of its own: a site has
// 2²⁴ calls.
func (d Drop) Numbered(rows, width int) bool { return rows*((width+31)/32)*4 <= 1<<24 }

// Dropout: Y = Residual + drop(X), where drop keeps or zeroes an element and scales what it keeps.
// The gradient of drop is drop: DX = drop(DY) is the same op without a residual.
type Dropout struct {
	Y, X, Residual *Tensor
	Drop
}

// Kind names the op.
func (o *Dropout) Kind() string { return "dropout" }

// Args visits the tensors.
func (o *Dropout) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.X, o.Residual)
	visit(f, Write, o.Y)
}

// Cost counts three operations an element.
func (o *Dropout) Cost() Cost { return Cost{3 * int64(o.X.Len()), bytesOf(o)} }

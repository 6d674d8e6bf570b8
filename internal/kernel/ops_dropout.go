package kernel

import "math"

// Drop says which elements of a tensor a dropout keeps. The mask is Philox by (global instance,
// Site, element), so that a gradient can draw it again and nothing is stored.
//
// The random bits of 32 neighbours of a row of `width`, columns 32·block to 32·block+31, are the
// four words of a call of Philox with rng.ShortRounds rounds, (Seed, global instance, draw,
// rng.Dropout): draw is Site in its upper eight bits and row·⌈width/32⌉+block in the others. Row
// counts the instance's rows; for weights of attention those are its queries, head by head, and
// their columns are the keys. With w[i] for bit c of words[i], w8[i] for bit c+8 modulo 32, and so
// on, i from 3 down to 0 and i+1 modulo 4, the number of column c is from the top
//
//	w[i]   w8[i] ^ w16[i+1]   w24[i]   w16[i]
//
// An element is dropped if its number is below Threshold. So every number is uniform on 16 bits,
// and the upper eight bits of any two elements are independent: two elements know of each other
// only where one of them comes within 2⁻⁸ of the threshold.
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

// Numbered tells whether every element of so many rows per instance has bits of its own: a site has
// 2²⁴ calls.
func (d Drop) Numbered(rows, width int) bool { return rows*((width+31)/32) <= 1<<24 }

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

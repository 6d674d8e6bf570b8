package vec

import (
	"golang.org/x/sys/cpu"

	"haul/internal/rules/ir"
)

//go:noescape
func addAVX512(d, a, b *Block)

//go:noescape
func subAVX512(d, a, b *Block)

//go:noescape
func mulAVX512(d, a, b *Block)

//go:noescape
func andAVX512(d, a, b *Block)

//go:noescape
func orAVX512(d, a, b *Block)

//go:noescape
func xorAVX512(d, a, b *Block)

//go:noescape
func shlAVX512(d, a, b *Block)

//go:noescape
func shrAVX512(d, a, b *Block)

//go:noescape
func leastAVX512(d, a, b *Block)

//go:noescape
func greatestAVX512(d, a, b *Block)

//go:noescape
func faddAVX512(d, a, b *Block)

//go:noescape
func fsubAVX512(d, a, b *Block)

//go:noescape
func fmulAVX512(d, a, b *Block)

//go:noescape
func fdivAVX512(d, a, b *Block)

//go:noescape
func fminAVX512(d, a, b *Block)

//go:noescape
func fmaxAVX512(d, a, b *Block)

//go:noescape
func fnegAVX512(d, a, b *Block)

//go:noescape
func fabsAVX512(d, a, b *Block)

//go:noescape
func fsqrtAVX512(d, a, b *Block)

//go:noescape
func floatAVX512(d, a, b *Block)

//go:noescape
func eqAVX512(a, b *Block) uint64

//go:noescape
func ltAVX512(a, b *Block) uint64

//go:noescape
func leAVX512(a, b *Block) uint64

//go:noescape
func feqAVX512(a, b *Block) uint64

//go:noescape
func fltAVX512(a, b *Block) uint64

//go:noescape
func fleAVX512(a, b *Block) uint64

//go:noescape
func chooseAVX512(d *Block, mask uint64, yes, no *Block)

//go:noescape
func fillAVX512(to *Block, word uint32)

// fastest returns the operations of this processor.
func fastest() *set {
	if !cpu.X86.HasAVX512F {
		return &plain
	}
	return &set{
		compares: [ops]func(a, b *Block) uint64{
			ir.Eq: eqAVX512, ir.Lt: ltAVX512, ir.Le: leAVX512, ir.FEq: feqAVX512, ir.FLt: fltAVX512, ir.FLe: fleAVX512,
		},
		computes: [ops]func(d, a, b *Block){
			ir.Add: addAVX512, ir.Sub: subAVX512, ir.Mul: mulAVX512, ir.And: andAVX512, ir.Or: orAVX512, ir.Xor: xorAVX512,
			ir.Shl: shlAVX512, ir.Shr: shrAVX512, ir.Min: leastAVX512, ir.Max: greatestAVX512,
			ir.FAdd: faddAVX512, ir.FSub: fsubAVX512, ir.FMul: fmulAVX512, ir.FDiv: fdivAVX512, ir.FMin: fminAVX512, ir.FMax: fmaxAVX512,
			ir.FNeg: fnegAVX512, ir.FAbs: fabsAVX512, ir.FSqrt: fsqrtAVX512, ir.Float: floatAVX512,
		},
		choose: chooseAVX512, fill: fillAVX512,
	}
}

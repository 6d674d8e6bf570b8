package kernel

import "math"

// Muon, the rule for matrices in AdamW.Side's blocks (Keller Jordan et al., 2024; steps scaled as
// Moonlight does, Liu et al., 2025).
//
// What a reader could break: a parameter is made of blocks altogether or not at all, and starts at
// a multiple of 16 elements, so that blocks and Rest never share 16 elements that a device handles
// as one. Every device has its blocks and the rule's numbers from here.

// Block is a square piece of a matrix: rows of AdamW.Side weights, Stride apart.
type Block struct{ Offset, Stride int }

// The rule's numbers. A block X of Frobenius norm at most one becomes nearly orthogonal, its
// singular values about one, by MuonRounds times X = MuonA·X + (MuonB·A + MuonC·A·A)·X with A =
// X·Xᵀ. A step of MuonShare·sqrt(side) times that is as long as one of AdamW tends to be.
const (
	MuonMomentum        = 0.95
	MuonRounds          = 5
	MuonA, MuonB, MuonC = 3.4445, -4.7750, 2.0315
	MuonShare           = 0.2
	MuonEps             = 1e-7

	MuonMost = 128 // the longest side
)

// MuonSide is the side of a model's blocks: the largest divisor of its width that is at most
// MuonMost.
func MuonSide(width int) int {
	for side := min(width, MuonMost); side > 1; side-- {
		if width%side == 0 {
			return side
		}
	}
	return 1
}

// inBlocks tells whether a parameter is made of blocks: a matrix whose rows and columns are both
// multiples of Side. Vectors never are, whatever their length.
func (o *AdamW) inBlocks(p Param) bool {
	return o.Side > 0 && len(p.Shape) == 2 && p.Len() > 0 && p.Shape[0]%o.Side == 0 && p.Shape[1]%o.Side == 0
}

// Blocks lists what Muon updates, parameter by parameter, each by rows of blocks.
func (o *AdamW) Blocks() []Block {
	var out []Block
	for _, p := range o.Layout.Params {
		if !o.inBlocks(p) {
			continue
		}
		for r := 0; r < p.Shape[0]; r += o.Side {
			for c := 0; c < p.Shape[1]; c += o.Side {
				out = append(out, Block{p.Offset + r*p.Shape[1] + c, p.Shape[1]})
			}
		}
	}
	return out
}

// Rest lists the runs [from, to) of the flat buffers that keep AdamW, in order; both are multiples
// of 16. Without blocks it is one run of all.
func (o *AdamW) Rest() [][2]int {
	var out [][2]int
	at := 0
	until := func(end int) {
		if at < end {
			out = append(out, [2]int{at, end})
		}
	}
	for _, p := range o.Layout.Params {
		if o.inBlocks(p) {
			until(p.Offset)
			at = (p.Offset + p.Len() + 15) &^ 15
		}
	}
	until(o.Layout.Len)
	return out
}

// MuonStep is what the learning rate is multiplied by for a block.
func (o *AdamW) MuonStep() float64 { return MuonShare * math.Sqrt(float64(o.Side)) }

package fuse

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of sequence/src/layer_fold.cu, and how many parameters of each kind it has for a weight of
// either sort.
const (
	layerFoldThreads = 256
	layerFoldRows    = 4

	foldPointers, foldNumbers   = 10, 4
	plainPointers, plainNumbers = 3, 5
)

// folds collects what one launch of sequence/src/layer_fold.cu adds up: two weights with a norm
// folded into them, then two without.
type folds struct {
	b      *bind.Binder
	args   []any
	blocks int
	again  uint32
}

// folded is a weight behind a norm, whose gradients follow from the weight's.
func (f *folds) folded(parts uint64, shares int, w *kernel.LinearGradW, of *kernel.Linear, norm *kernel.Norm, grad *kernel.NormGrad) {
	b := f.b
	n, adds := of.W.Shape[0], b.Adds(w.DW)|b.Adds(w.DBias)<<1|b.Adds(grad.DGamma)<<2|b.Adds(grad.DBeta)<<3
	f.args = append(f.args, b.Address(w.DW), b.Addr(w.DBias), b.Address(grad.DGamma), b.Address(grad.DBeta),
		b.Scratch(4*2*LayerWidth*bind.Ceil(n, layerFoldRows)*b.Lanes), b.Scratch(4*b.Lanes), parts, b.Address(of.W),
		b.Address(norm.Gamma), b.Address(norm.Beta), bind.I32(n), bind.I32(shares), bind.I32(bind.Ceil(shares, b.Lanes)), adds)
	f.blocks, f.again = f.blocks+bind.Ceil(n, layerFoldRows), f.again|adds
}

func (f *folds) plain(parts uint64, shares int, w *kernel.LinearGradW) {
	b := f.b
	n, k, adds := w.DW.Shape[0], w.DW.Shape[1], b.Adds(w.DW)|b.Adds(w.DBias)<<1
	f.args = append(f.args, b.Address(w.DW), b.Address(w.DBias), parts, bind.I32(n*k), bind.I32(n), bind.I32(shares), bind.I32(bind.Ceil(shares, b.Lanes)), adds)
	f.blocks, f.again = f.blocks+bind.Ceil(n*k+n, layerFoldThreads), f.again|adds
}

// noFolded and noPlain fill the place of a weight that there is not.
func (f *folds) noFolded() { f.absent(foldPointers, foldNumbers) }
func (f *folds) noPlain()  { f.absent(plainPointers, plainNumbers) }

func (f *folds) absent(pointers, numbers int) {
	for range pointers {
		f.args = append(f.args, uint64(0))
	}
	for range numbers {
		f.args = append(f.args, bind.I32(0))
	}
}

// launch begins when the parts are all there: its many small blocks would take room from others
// while they wait.
func (f *folds) launch() bind.Launch {
	return bind.Launch{Module: "layer_fold", Kernel: "layer_fold", Grid: bind.Dim3{f.blocks, f.b.Lanes, 1}, Block: bind.Dim3{layerFoldThreads, 1, 1},
		Args: append(f.args, bind.I32(f.b.LaneSize)), After: true, Aside: f.again == 0}
}

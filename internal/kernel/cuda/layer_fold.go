package cuda

import "haul/internal/kernel"

// Sizes of src/sequence/layer_fold.cu, and how many parameters of each kind it has for a weight of
// either sort.
const (
	layerFoldThreads = 256
	layerFoldRows    = 4

	foldPointers, foldNumbers   = 10, 4
	plainPointers, plainNumbers = 3, 5
)

// folds collects what one launch of src/sequence/layer_fold.cu adds up: two weights with a norm
// folded into them, then two without.
type folds struct {
	b      *binder
	args   []any
	blocks int
	again  uint32
}

// folded is a weight behind a norm, whose gradients follow from the weight's.
func (f *folds) folded(parts uint64, shares int, w *kernel.LinearGradW, of *kernel.Linear, norm *kernel.Norm, grad *kernel.NormGrad) {
	b := f.b
	n, adds := of.W.Shape[0], b.adds(w.DW)|b.adds(w.DBias)<<1|b.adds(grad.DGamma)<<2|b.adds(grad.DBeta)<<3
	f.args = append(f.args, b.address(w.DW), b.addr(w.DBias), b.address(grad.DGamma), b.address(grad.DBeta),
		b.scratch(4*2*layerWidth*ceil(n, layerFoldRows)*b.lanes), b.scratch(4*b.lanes), parts, b.address(of.W),
		b.address(norm.Gamma), b.address(norm.Beta), i32(n), i32(shares), i32(ceil(shares, b.lanes)), adds)
	f.blocks, f.again = f.blocks+ceil(n, layerFoldRows), f.again|adds
}

func (f *folds) plain(parts uint64, shares int, w *kernel.LinearGradW) {
	b := f.b
	n, k, adds := w.DW.Shape[0], w.DW.Shape[1], b.adds(w.DW)|b.adds(w.DBias)<<1
	f.args = append(f.args, b.address(w.DW), b.address(w.DBias), parts, i32(n*k), i32(n), i32(shares), i32(ceil(shares, b.lanes)), adds)
	f.blocks, f.again = f.blocks+ceil(n*k+n, layerFoldThreads), f.again|adds
}

// noFolded and noPlain fill the place of a weight that there is not.
func (f *folds) noFolded() { f.absent(foldPointers, foldNumbers) }
func (f *folds) noPlain()  { f.absent(plainPointers, plainNumbers) }

func (f *folds) absent(pointers, numbers int) {
	for range pointers {
		f.args = append(f.args, uint64(0))
	}
	for range numbers {
		f.args = append(f.args, i32(0))
	}
}

// launch begins when the parts are all there: its many small blocks would take room from others
// while they wait.
func (f *folds) launch() launch {
	return launch{module: "layer_fold", kernel: "layer_fold", grid: dim3{f.blocks, f.b.lanes, 1}, block: dim3{layerFoldThreads, 1, 1},
		args: append(f.args, i32(f.b.laneSize)), after: true, aside: f.again == 0}
}

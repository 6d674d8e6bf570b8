package fuse

import (
	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
)

// layerTile is a block's tile of DW that sequence/src/layer_dw.cu is built for.
type layerTile struct {
	N, K          int // of DW
	rows, columns int
	groups        int // warpgroups
	Stage, stages int // rows of a stage
}

// LayerTiles are for the four weights of a layer, in the kernel's order: each takes as much of DW
// as a block's registers hold.
var LayerTiles = [4]layerTile{
	{LayerWidth, LayerFeed, 128, 256, 2, 32, 9}, // down
	{LayerFeed, LayerWidth, 256, 128, 2, 32, 8}, // up
	{LayerWidth, LayerWidth, 128, 128, 2, 64, 5},
	{3 * LayerWidth, LayerWidth, 384, 128, 3, 32, 6},
}

const (
	downWeight, upWeight, outWeight, qkvWeight = 0, 1, 2, 3

	layerWeightThreads = 384
)

// shared is a block's stages with a barrier each, and the ones that make sums of columns: 64
// columns of them in a stage of 128.
func (t layerTile) shared() int {
	columns := t.rows + t.columns
	if t.columns == LayerWidth {
		columns += 64
	}
	return t.stages*(t.Stage*2*columns+8) + 256
}

// count is how many tiles DW has.
func (t layerTile) count() int { return t.N / t.rows * (t.K / t.columns) }

// LayerWeights is the gradients of those weights of a layer, and of its second norm, that its
// tail's gradient makes possible, and of the weight and norm before the attention of the layer
// behind. Either may be absent.
type LayerWeights struct{ Own, next *layer }

func (o *LayerWeights) Kind() string { return "layer.dw" }

func (o *LayerWeights) Args(f func(*kernel.Tensor, kernel.Access)) {
	if l := o.Own; l != nil {
		access(f, kernel.Read, l.kept2, l.up.Pre, l.downX.DX, l.norm2.Y, l.kept1, l.attention.Y, l.up.W, l.norm2.Gamma, l.norm2.Beta)
		access(f, kernel.Update, l.downW.DW, l.downW.DBias, l.upW.DW, l.upW.DBias, l.outW.DW, l.outW.DBias, l.grad2.DGamma, l.grad2.DBeta)
	}
	if l := o.next; l != nil {
		access(f, kernel.Read, l.attentionGrad.DQKV, l.norm1.Y, l.qkv.W, l.norm1.Gamma, l.norm1.Beta)
		access(f, kernel.Update, l.qkvW.DW, l.grad1.DGamma, l.grad1.DBeta)
	}
}

func (o *LayerWeights) Cost() kernel.Cost {
	var of []kernel.Op
	if l := o.Own; l != nil {
		of = append(of, l.downW, l.upW, l.outW)
	}
	if l := o.next; l != nil {
		of = append(of, l.qkvW)
	}
	return costOf(o, of...)
}

// weightShares is how many shares of the rows each weight has, for at most so many blocks in all:
// in proportion to what a block reads of a row. The two wide weights have two tiles.
func weightShares(blocks int, own, next bool) (s [4]int) {
	switch {
	case own && next:
		unit := max(1, blocks/18)
		return [4]int{3 * unit, 3 * unit, 2 * unit, 4 * unit}
	case own:
		unit := max(1, blocks/14)
		return [4]int{3 * unit, 3 * unit, 2 * unit, 0}
	default:
		return [4]int{qkvWeight: blocks}
	}
}

// stages describes a matrix that is brought so many rows at a time.
func stages(b *bind.Binder, t *kernel.Tensor, rows int) uint64 {
	return b.Tiled(cu.Matrix{At: b.Address(t), Rows: t.Rows(), Cols: t.Cols(), Stride: t.Stride, Box: rows})
}

// columnStages is the same for one that lies as blocks of 64 columns.
func columnStages(b *bind.Binder, t *kernel.Tensor, rows int) uint64 {
	return b.Tiled(cu.Matrix{At: b.Address(t), Rows: t.Rows(), Cols: t.Cols(), Stride: t.Stride, Box: rows, Blocks: t.Cols() / cu.MatrixColumns})
}

// besideInputs is how many multiprocessors the first layer's weight has, whose gradient is made
// beside layerQKVGrad; that has the others.
func besideInputs(sms int) int { return max(1, sms/3) }

func (o *LayerWeights) Bind(b *bind.Binder) ([]bind.Launch, error) {
	var jobs [4]struct{ dy, x *kernel.Tensor }
	blocks := besideInputs(b.SMs)
	if l := o.Own; l != nil {
		jobs[downWeight].dy, jobs[downWeight].x = l.kept2, l.up.Pre
		jobs[upWeight].dy, jobs[upWeight].x = l.downX.DX, l.norm2.Y
		jobs[outWeight].dy, jobs[outWeight].x = l.kept1, l.attention.Y
		blocks = b.SMs * 9 / 22
		if attention.StreamsGrad(b, l.attentionGrad) { // long beside this one
			blocks = b.SMs * 3 / 11
		}
	}
	if l := o.next; l != nil {
		jobs[qkvWeight].dy, jobs[qkvWeight].x = l.attentionGrad.DQKV, l.norm1.Y
	}
	shares := weightShares(blocks, o.Own != nil, o.next != nil)
	var args []any
	var parts [4]uint64
	rows, grid, shared := 0, 0, 0
	for i, t := range LayerTiles {
		if shares[i] == 0 {
			args = append(args, uint64(0), uint64(0), uint64(0), bind.I32(0))
			continue
		}
		rows = jobs[i].dy.Rows()
		parts[i] = b.Scratch(4 * shares[i] * (t.N*t.K + t.N))
		grid += t.count() * shares[i]
		shared = max(shared, t.shared())
		dy, x := stages, stages
		switch i { // as layerTailGrad leaves them
		case downWeight:
			x = columnStages
		case upWeight:
			dy = columnStages
		}
		args = append(args, parts[i], dy(b, jobs[i].dy, t.Stage), x(b, jobs[i].x, t.Stage), bind.I32(shares[i]))
	}
	return []bind.Launch{{Module: "layer_dw", Kernel: "layer_dw", Grid: bind.Dim3{grid, 1, 1}, Block: bind.Dim3{layerWeightThreads, 1, 1}, Shared: shared,
		Args: append(args, bind.I32(rows)), First: true}, o.fold(b, parts, shares)}, nil
}

// fold adds the parts up.
func (o *LayerWeights) fold(b *bind.Binder, parts [4]uint64, shares [4]int) bind.Launch {
	f := folds{b: b}
	if l := o.Own; l != nil {
		f.folded(parts[upWeight], shares[upWeight], l.upW, l.up, l.norm2, l.grad2)
	} else {
		f.noFolded()
	}
	if l := o.next; l != nil {
		f.folded(parts[qkvWeight], shares[qkvWeight], l.qkvW, l.qkv, l.norm1, l.grad1)
	} else {
		f.noFolded()
	}
	if l := o.Own; l != nil {
		f.plain(parts[downWeight], shares[downWeight], l.downW)
		f.plain(parts[outWeight], shares[outWeight], l.outW)
	} else {
		f.noPlain()
		f.noPlain()
	}
	return f.launch()
}

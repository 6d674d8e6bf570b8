package fuse

import (
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// GPU is what decides, besides the shapes of a program, whether ops are fused.
type GPU struct {
	Precision    bind.Precision
	Major, Minor int // compute capability
	SMs          int // multiprocessors
	MaxShared    int // bytes of shared memory that a block may ask for
}

// Row is one fusion: ops that are recorded one by one and computed by fewer kernels. A row has one
// of rewrite and find.
type Row struct {
	Name    string   // the ops in recording order
	Kernels []string // that stand in their place, as module.kernel
	Where   string   // which programs and GPUs have it
	Row     string   // settings of a row of docs/benchmarks.md that has it
	Saves   string   // what it saves there
	// rewrite returns the program with ops of this package in the place of recorded ones, or the
	// program itself. It runs before memory is placed.
	rewrite func(p *kernel.Program, g GPU) *kernel.Program
	// find marks ops of a program whose memory is placed.
	find func(f *finder)
}

// Table lists all fusions, in the order in which they are applied. What a plan records fused (bias,
// residual, GELU and dropout in kernel.Linear) is no row, since every device has it.
var Table = []Row{
	{
		Name:    "all ops of a causal transformer's layer, their gradients, the embedding before the first and the loss behind the last",
		Kernels: []string{"layer_pack.layer_pack", "layer_embed.layer_embed", "layer_tail.layer_tail", "layer_tail_grad.layer_tail_grad", "layer_dw.layer_dw", "layer_head.layer_head"},
		Where:   "bf16, compute capability 9.0, width 128, feed-forward 512",
		Row:     "ad_dr_compressed", Saves: "10.6 to 6.9 ms, 0.03 of them by the embedding, 0.057 by the loss",
		rewrite: func(p *kernel.Program, g GPU) *kernel.Program {
			if !JoinsLayers(g.Precision, g.Major, g.Minor, g.MaxShared) {
				return p
			}
			return JoinLayers(p)
		},
	},
	{
		Name:    "gradients of norm, product, attention or gate, product, and those of norm, projections, mean, graph, pointer",
		Kernels: []string{"feed_grad.feed_grad", "attention_layer_grad.attention_layer_grad", "head_grad.head_grad"},
		Where:   "tf32, width 128, 4 heads, 16 nodes at most, a block per multiprocessor at most",
		Row:     "tiny_1", Saves: "0.312 to 0.293 ms, with the gradient of the decisions in one kernel",
		rewrite: func(p *kernel.Program, g GPU) *kernel.Program { return JoinWayBack(p, g.Precision, g.SMs) },
	},
	{
		Name:    "causal attention and its gradient, which reads the masks of dropout that the first leaves in memory",
		Kernels: []string{"bf16_attention_grad_short.bf16_attention_grad_short_kept_16"},
		Where:   "bf16, dropout, heads of 16 columns at most",
		Row:     "ad_dr_compressed", Saves: "not timed by itself",
		rewrite: func(p *kernel.Program, g GPU) *kernel.Program {
			if g.Precision != bind.BF16 {
				return p
			}
			return KeepMasks(p)
		},
	},
	{
		Name:    "norm, product, attention or gate, product",
		Kernels: []string{"attention_layer.attention_layer_16", "feed.feed_forward_16"},
		Where:   "tf32, width 128, 4 heads, 16 nodes at most, a block per multiprocessor at most",
		Row:     "tiny_1", Saves: "0.339 to 0.312 ms",
		find: joinSublayers,
	},
	{
		Name:    "norm, projections, mean, graph, pointer",
		Kernels: []string{"head.head_forward"},
		Where:   "tf32, width 128, 16 nodes at most, an instance per multiprocessor at most",
		Row:     "tiny_1", Saves: "not timed by itself",
		find: joinHeads,
	},
	{
		Name:    "linear, GLU",
		Kernels: []string{"linear_rows.linear_rows_glu"},
		Where:   "tf32, compute capability 9.0, rows for all multiprocessors",
		Row:     "large", Saves: "43 µs per layer",
		find: joinGLU,
	},
	{
		Name:    "gradient of linear by its input, gradient of GLU",
		Kernels: []string{"linear_rows.linear_rows_dx_glu"},
		Where:   "tf32, as above or in the smallest tiles, one reader",
		Row:     "large", Saves: "25 µs per layer",
		find: joinGLUGrad,
	},
}

// Rewrite applies the rows that put ops of this package in the place of recorded ones. The memory
// of every tensor must be its own.
func Rewrite(p *kernel.Program, g GPU) *kernel.Program {
	for _, r := range Table {
		if r.rewrite != nil {
			p = r.rewrite(p, g)
		}
	}
	return p
}

// finder is a program whose memory is placed.
type finder struct {
	b       *bind.Binder
	ops     []kernel.Op
	writer  map[*kernel.Tensor]kernel.Op
	readers map[*kernel.Tensor]int // of a root tensor
}

// Find applies the other rows: it fills Fused and Absorbed of the binder.
func Find(b *bind.Binder, ops []kernel.Op) {
	b.Fused, b.Absorbed = map[kernel.Op]func() []bind.Launch{}, map[kernel.Op]kernel.Op{}
	f := &finder{b, ops, map[*kernel.Tensor]kernel.Op{}, map[*kernel.Tensor]int{}}
	for _, op := range ops {
		op.Args(func(t *kernel.Tensor, a kernel.Access) {
			if a != kernel.Read {
				f.writer[t] = op
			}
			if a != kernel.Write {
				f.readers[t.Root()]++
			}
		})
	}
	for _, r := range Table {
		if r.find != nil {
			r.find(f)
		}
	}
}

// fuse has one kernel launched at an op, which does others with it.
func (f *finder) fuse(launches func() []bind.Launch, at kernel.Op, others ...kernel.Op) {
	f.b.Fused[at] = launches
	for _, op := range others {
		f.b.Absorbed[op] = at
	}
}

// FewRows reports whether a program has gradients of sublayers as one op: then one op does not fill
// the GPU, and what counts is how many follow each other.
func FewRows(p *kernel.Program) bool {
	return slices.ContainsFunc(p.PerShard, func(op kernel.Op) bool {
		switch op.(type) {
		case *SublayerGrad, *headGrad:
			return true
		}
		return false
	})
}

// Remark says in a sentence which setting would bring a fusion that the program just misses; ""
// where there is none.
func Remark(p *kernel.Program, g GPU) string {
	if !JoinsLayers(g.Precision, g.Major, g.Minor, g.MaxShared) {
		return ""
	}
	return unjoined(p)
}

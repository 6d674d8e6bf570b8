package routing

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/bindtest"
)

// TestSlowly: whoever leaves the tensor cores is told by what, and nobody else.
func TestSlowly(t *testing.T) {
	for _, c := range []struct {
		n, heads, hd, starts int
		precision            bind.Precision
		want                 string
	}{
		{101, 4, 32, 100, bind.TF32, ""},
		{128, 4, 32, 1, bind.FP32, ""},
		{129, 4, 32, 1, bind.FP32, "--precision tf32"},
		{129, 4, 32, 1, bind.TF32, ""},
		{4096, 8, 16, 100, bind.BF16, ""},
		{201, 2, 64, 1, bind.TF32, "heads of 16 or 32"},
		{201, 8, 32, 1, bind.TF32, "model.hidden_dim=128"},
		{51, 2, 64, 50, bind.TF32, "heads of 16 or 32"},
		{11, 4, 32, 1, bind.TF32, ""},
	} {
		got := Slowly(bindtest.New(256, c.precision), bindtest.RolloutGrad(bindtest.Rollout(256, c.n, c.heads, c.hd, c.starts)))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%d nodes, %d heads of %d, %s: %q, want %q", c.n, c.heads, c.hd, c.precision, got, c.want)
		}
	}
}

// TestRolloutPaths: which kernel serves a shape, with which block and how much shared memory, and
// what the user is told.
func TestRolloutPaths(t *testing.T) {
	for _, c := range []struct {
		name                         string
		batch, n, heads, hd, starts  int
		precision                    bind.Precision
		rollout, rows, heads2, words string
		shared                       int
	}{
		{"tiny", 128, 11, 4, 32, 1, bind.TF32, "rollout_held_16/rollout_held_32", "grad_near/grad_near", "grad_near/grad_near", "in registers", 7648},
		{"few nodes, two starts", 128, 11, 4, 32, 2, bind.TF32, "rollout_held_16/rollout_held_32", "grad_tf32_16/grad_rows", "grad_tf32_16/grad_heads_32", "in registers", 7648},
		{"few nodes in fp32", 128, 11, 4, 32, 1, bind.FP32, "rollout/rollout_row_32", "grad_fp32_16/grad_rows", "grad_fp32_16/grad_heads_32", "in shared memory", 0},
		{"tiny fp32", 128, 11, 4, 32, 1, bind.FP32, "rollout/rollout_row_32", "grad_fp32_16/grad_rows", "grad_fp32_16/grad_heads_32", "in shared memory", 27040},
		{"N=100 greedy baseline", 512, 101, 8, 16, 1, bind.TF32, "rollout_held_104/rollout_held_16", "grad_tf32_104/grad_rows", "grad_tf32_104/grad_heads_16", "in registers", 0},
		{"N=100 in fp32", 512, 101, 8, 16, 1, bind.FP32, "rollout/rollout_row_128", "grad_fp32_104/grad_rows", "grad_fp32_104/grad_heads_16", "in shared memory", 0},
		{"more heads than warps", 512, 101, 8, 32, 1, bind.TF32, "rollout/rollout_row_far_128", "rollout_grad/grad_plain", "", "read from L2", 0},
		{"POMO", 256, 101, 8, 16, 100, bind.BF16, "starts_half_104/rollout_half_16", "half_rows_104/decide_rows_16", "half_nodes_64/back_nodes_16", "tensor cores", 107488},
		{"POMO of another width", 256, 101, 2, 32, 100, bind.TF32, "starts_tf32/rollout_starts_104", "grad_tf32_104/grad_rows", "grad_tf32_104/grad_heads_32", "tensor cores", 0},
		{"few starts", 256, 101, 8, 16, 7, bind.TF32, "starts_half_104/rollout_few_16", "grad_tf32_104/grad_rows", "grad_tf32_104/grad_heads_16", "tensor cores", 0},
		{"wide heads", 256, 51, 2, 64, 50, bind.TF32, "starts_tf32/rollout_starts_56", "rollout_grad/grad_plain", "", "tensor cores", 0},
		{"POMO fp32", 256, 51, 4, 32, 50, bind.FP32, "starts_fp32/rollout_starts_56", "grad_fp32_56/grad_rows", "grad_fp32_56/grad_heads_32", "tensor cores", 0},
		{"past the nodes of tiles", 512, 129, 8, 16, 1, bind.TF32, "rollout_held_136/rollout_held_16", "stream_rows/rows_held_16", "stream_nodes/nodes_even_16", "registers, in fp16", 0},
		{"the most held", 512, 136, 4, 32, 1, bind.TF32, "rollout_held_136/rollout_held_32", "stream_rows/rows_held_32", "stream_nodes/nodes_even_32", "registers, in fp16", 0},
		{"past those held", 512, 137, 4, 32, 1, bind.TF32, "stream_row/row_ahead_32", "stream_rows/rows_held_32", "stream_nodes/nodes_even_32", "caches, in fp16", 0},
		{"POMO just past a word of nodes", 256, 129, 4, 32, 128, bind.TF32, "starts_half_136/rollout_half_32", "half_rows_136/decide_rows_32", "half_nodes_136/back_nodes_32", "starts on tensor cores", 106848},
		{"the most nodes of tiles", 256, 136, 8, 16, 135, bind.BF16, "starts_half_136/rollout_half_16", "half_rows_136/decide_rows_16", "half_nodes_136/back_nodes_16", "starts on tensor cores", 0},
		{"few instances there", 132, 129, 4, 32, 128, bind.TF32, "starts_half_136/rollout_few_32", "half_rows_136/decide_rows_32", "half_nodes_136/back_nodes_32", "starts on tensor cores", 0},
		{"POMO just past the nodes of tiles", 256, 137, 4, 32, 128, bind.TF32, "stream_starts/rollout_two_32", "stream_rows/rows_held_32", "stream_nodes/nodes_even_32", "starts on tensor cores", 0},
		{"POMO past the nodes of tiles", 256, 201, 4, 32, 200, bind.BF16, "stream_starts/rollout_three_32", "stream_rows/rows_held_32", "stream_nodes/nodes_even_32", "starts on tensor cores", 0},
		{"POMO past what is held", 64, 501, 4, 32, 100, bind.TF32, "stream_starts/rollout_team_one_32", "stream_rows/rows_ring_32", "stream_nodes/nodes_even_32", "starts on tensor cores", 0},
		{"the most nodes", 2, 4096, 8, 16, 100, bind.TF32, "stream_starts/rollout_team_16", "stream_rows/rows_ring_16", "stream_nodes/nodes_even_16", "starts on tensor cores", 0},
		{"too many nodes for shared memory", 4, 501, 8, 16, 1, bind.FP32, "rollout/rollout_row_far_1024", "rollout_grad/grad_plain", "", "read from L2", 0},
		{"odd width", 3, 9, 2, 7, 8, bind.TF32, "rollout/rollout_row_32", "rollout_grad/grad_plain", "", "in shared memory", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bindtest.New(c.batch, c.precision)
			o := bindtest.Rollout(c.batch, c.n, c.heads, c.hd, c.starts)
			ls, err := rollout(b, o)
			packed := 0
			if strings.HasPrefix(c.rollout, "stream") {
				packed = 1 // its matrices are laid out first
			}
			if err != nil || len(ls) != 1+packed {
				t.Fatalf("%d launches, error %v", len(ls), err)
			}
			ls = ls[packed:]
			if got := ls[0].Module + "/" + ls[0].Kernel; got != c.rollout {
				t.Errorf("rollout by %s, want %s", got, c.rollout)
			}
			if c.shared != 0 && ls[0].Shared != c.shared {
				t.Errorf("%d bytes of shared memory, want %d", ls[0].Shared, c.shared)
			}
			if path := RolloutPath(b, o); !strings.Contains(path, c.words) {
				t.Errorf("path %q does not say %q", path, c.words)
			}
			near := *o
			near.Near = 0.2
			if ls, err := rollout(b, &near); err != nil || len(ls) != 2+packed || ls[0].Kernel != "bias_tables" ||
				strings.Contains(ls[1].Module, "_bias") != strings.Contains(c.rollout, "starts_half") {
				t.Errorf("with distances in the scores: launches %v, error %v", ls, err)
			}
			grad, err := RolloutGrad(b, bindtest.RolloutGrad(o))
			if err != nil {
				t.Fatal(err)
			}
			if plain := strings.Contains(GradPath(b, bindtest.RolloutGrad(o)), "one decision at a time"); plain != (c.heads2 == "") {
				t.Errorf("gradient path %q", GradPath(b, bindtest.RolloutGrad(o)))
			}
			names := ""
			for _, l := range append(ls, grad...) {
				names += l.Module + "/" + l.Kernel + " "
				if l.Shared > b.MaxShared || l.Block[0]%32 != 0 || l.Block[0] > 1024 || l.Grid[0] < 1 || l.Grid[1] < 1 {
					t.Errorf("%s cannot be launched: grid %v, block %v, shared %d", l.Kernel, l.Grid, l.Block, l.Shared)
				}
			}
			if !strings.Contains(names, c.rows) || !strings.Contains(names, c.heads2) || !strings.HasSuffix(names, "rollout_grad/sum_loads ") {
				t.Errorf("launches %s, want %s and %s", names, c.rows, c.heads2)
			}
		})
	}
}

// TestGradChunks: every instance belongs to one chunk, and what lies between the kernels is
// bounded.
func TestGradChunks(t *testing.T) {
	b := bindtest.New(256, bind.FP32)
	ls, err := RolloutGrad(b, bindtest.RolloutGrad(bindtest.Rollout(256, 101, 8, 16, 100)))
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, l := range ls {
		if l.Kernel == "walk" {
			if first := int(l.Args[8].(int32)); first != next {
				t.Errorf("a chunk starts at instance %d, want %d", first, next)
			}
			next += l.Grid[0]
		}
	}
	if next != 256 {
		t.Errorf("chunks hold %d instances, want 256", next)
	}
	for _, each := range []int{1, 1 << 20, gradScratch / 70, 2 * gradScratch} {
		if n := chunkOf(256, each, 132); n < 1 || n > 256 || n > 1 && n*each > gradScratch {
			t.Errorf("chunkOf(256, %d) = %d", each, n)
		}
	}
}

// TestHalfGradChunks does the same for the gradient with products of fp16 numbers, on a card that
// holds all and on a small one.
func TestHalfGradChunks(t *testing.T) {
	for _, memory := range []int{0, 8 << 30} {
		b := bindtest.New(256, bind.TF32)
		b.Memory = memory
		o := bindtest.RolloutGrad(bindtest.Rollout(256, 101, 4, 32, 100))
		ls, err := RolloutGrad(b, o)
		if err != nil {
			t.Fatal(err)
		}
		g := newHalfGrad(o, policyOf(b, &o.Decoder), 13)
		next, chunks := 0, 0
		for _, l := range ls {
			if !strings.HasPrefix(l.Kernel, "decide_rows") {
				continue
			}
			if first := int(l.Args[13].(int32)); first != next {
				t.Errorf("a chunk starts at instance %d, want %d", first, next)
			}
			if l.Grid[0]*g.room*g.rowBytes() > budget(b, halfScratch) {
				t.Errorf("a chunk of %d instances takes more than %d bytes", l.Grid[0], budget(b, halfScratch))
			}
			next += l.Grid[0]
			chunks++
		}
		if next != 256 || (chunks == 1) != (memory == 0) {
			t.Errorf("%d chunks hold %d instances, want 256", chunks, next)
		}
	}
	for _, each := range []int{1, 1 << 20, 1 << 30, 1 << 40} {
		if n := evenChunk(256, each, 1<<30); n < 1 || n > 256 || n > 1 && n*each > 1<<30 {
			t.Errorf("evenChunk(256, %d) = %d", each, n)
		}
	}
}

// TestRowBlocks: decisions go to as many warps as the card holds at once, in blocks that fit it,
// and the slabs of back_nodes leave it as many blocks as registers do.
func TestRowBlocks(t *testing.T) {
	for _, c := range []struct{ instances, nodes, warps, splits, slab int }{
		{512, 21, 4, 1, 32}, {256, 51, 8, 1, 32}, {256, 101, 8, 1, 64}, {512, 101, 8, 1, 64}, {64, 101, 16, 2, 64}, {1, 101, 16, 132, 64}, {256, 129, 8, 1, 64},
		{4096, 51, 4, 1, 32},
	} {
		b := bindtest.New(c.instances, bind.TF32)
		o := bindtest.RolloutGrad(bindtest.Rollout(c.instances, c.nodes, 4, 32, c.nodes-1))
		p := policyOf(b, &o.Decoder)
		g := newHalfGrad(o, p, halfGradTiles(b, o, p))
		warps, splits := g.rowBlocks(c.instances, b.SMs, b.MaxShared)
		if warps != c.warps || splits != c.splits || g.slab() != c.slab {
			t.Errorf("%d instances of %d nodes: %d warps, %d blocks an instance, slabs of %d; want %d, %d, %d",
				c.instances, c.nodes, warps, splits, g.slab(), c.warps, c.splits, c.slab)
		}
		if blocks := rowWarps / g.nodeWarps(); blocks*(g.nodeShared(g.slab())+1024) > 228<<10 {
			t.Errorf("%d nodes: %d bytes of shared memory, too much for %d blocks", c.nodes, g.nodeShared(g.slab()), blocks)
		}
	}
}

// TestFewRollouts: rollouts have more registers where no multiprocessor gets more than eight warps
// of them.
func TestFewRollouts(t *testing.T) {
	for _, c := range []struct {
		instances, starts int
		kernel            string
	}{{512, 20, "rollout_few_32"}, {256, 50, "rollout_few_32"}, {265, 50, "rollout_half_32"}, {132, 100, "rollout_few_32"},
		{133, 100, "rollout_half_32"}} {
		b := bindtest.New(c.instances, bind.TF32)
		if ls, err := rollout(b, bindtest.Rollout(c.instances, c.starts+1, 4, 32, c.starts)); err != nil || ls[0].Kernel != c.kernel {
			t.Errorf("%d instances of %d starts: %v (%v), want %s", c.instances, c.starts, ls, err, c.kernel)
		}
	}
}

// TestRolloutsAnSM: rollouts with products of fp16 numbers leave room for other blocks on a
// multiprocessor, each of which the driver takes 1 KB for.
func TestRolloutsAnSM(t *testing.T) {
	for nodes, blocks := range map[int]int{101: 2, 51: 4, 129: 2, 136: 2} {
		b := bindtest.New(1, bind.TF32)
		o := bindtest.Rollout(1, nodes, 4, 32, nodes-1)
		p := policyOf(b, &o.Decoder)
		if shared := p.startsHalfShared(halfTiles(b, p)); blocks*(shared+1024) > 228<<10 {
			t.Errorf("%d nodes: %d bytes of shared memory, too much for %d blocks", nodes, shared, blocks)
		}
	}
}

// TestFarRollouts: past 128 nodes starts go to as few blocks as hold them, in equal parts.
func TestFarRollouts(t *testing.T) {
	for _, c := range []struct{ starts, blocks, warps int }{{100, 1, 7}, {128, 1, 8}, {129, 2, 5}, {135, 2, 5}} {
		ls, err := rollout(bindtest.New(256, bind.TF32), bindtest.Rollout(256, 136, 4, 32, c.starts))
		if err != nil || ls[0].Grid[1] != c.blocks || ls[0].Block[0] != 32*c.warps {
			t.Errorf("%d starts: %v (%v), want %d blocks of %d warps", c.starts, ls, err, c.blocks, c.warps)
		}
	}
}

// TestTwoHeadsAnSM: the gradient of a head leaves room for a second block on each multiprocessor, 1
// KB of which the driver keeps.
func TestTwoHeadsAnSM(t *testing.T) {
	for _, hd := range []int{16, 32} {
		b := bindtest.New(1, bind.TF32)
		o := bindtest.Rollout(1, 101, 128/hd, hd, 100)
		if p := policyOf(b, &o.Decoder); 2*(p.headShared(p.tilesFor())+1024) > 228<<10 {
			t.Errorf("heads of %d: %d bytes of shared memory", hd, p.headShared(p.tilesFor()))
		}
	}
}

func TestRolloutTooLarge(t *testing.T) {
	if _, err := rollout(bindtest.New(1, bind.FP32), bindtest.Rollout(1, maxNodes+1, 4, 32, 1)); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxNodes)) {
		t.Errorf("error %v does not name the limit", err)
	}
	b := bindtest.New(1, bind.TF32)
	_, err := rollout(b, bindtest.Rollout(1, mostDecoded+1, 4, 32, 1))
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(mostDecoded)) {
		t.Errorf("error %v does not name the limit", err)
	}
}

// TestManyNodesAreDecoded: rollouts are streamed past what their gradient is, of one start and of
// many, by every rule set, in memory that a block has.
func TestManyNodesAreDecoded(t *testing.T) {
	for _, n := range []int{mostStreamed - 1, mostStreamed, mostStreamed + 1, 5001, mostDecoded - 1, mostDecoded} {
		for _, starts := range []int{1, 100} {
			for _, heads := range []int{4, 8} {
				for _, set := range kernel.RuleSets() {
					b, o := bindtest.New(1, bind.TF32), bindtest.Rollout(1, n, heads, 128/heads, starts)
					o.Set = set
					ls, err := rollout(b, o)
					many := set == kernel.VRP || set == kernel.MDVRP
					// their columns leave room for fewer
					if set == kernel.VRP && n > 6000 || set == kernel.MDVRP && n > 5000 {
						if err == nil || !strings.Contains(err.Error(), "bytes of shared memory") {
							t.Errorf("%d nodes of many columns: %v", n, err)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%d nodes, %d starts: %v", n, starts, err)
					}
					last := ls[len(ls)-1]
					if !strings.HasPrefix(last.Module, "stream_") || last.Shared > b.MaxShared || last.Shared == 0 {
						t.Errorf("%d nodes, %d starts, heads %d: %s with %d bytes of shared memory", n, starts, heads, last.Module, last.Shared)
					}
					if many {
						continue // whose gradient has less room still
					}
					if _, err := RolloutGrad(b, bindtest.RolloutGrad(o)); (err != nil) != (n > mostStreamed) {
						t.Errorf("gradient of %d nodes: %v", n, err)
					} else if err != nil && !strings.Contains(err.Error(), fmt.Sprint(mostStreamed)) {
						t.Errorf("error %v does not name the limit", err)
					}
					if path := RolloutPath(b, o); !strings.Contains(path, "from the card's caches") {
						t.Errorf("%d nodes: %s", n, path)
					}
				}
			}
		}
	}
}

// TestTooManyNodesTakeNoMemory: what a card cannot decode is refused as that, and not for want of
// the memory of its table of pairs.
func TestTooManyNodesTakeNoMemory(t *testing.T) {
	const batch, n = 64, 20001
	b := bindtest.New(batch, bind.BF16)
	b.Scratch = func(bytes int) uint64 {
		t.Errorf("%d bytes are reserved for a rollout of %d nodes", bytes, n)
		return 1 << 40
	}
	o := bindtest.Rollout(batch, n, 8, 16, 1)
	o.Pair, o.PairContext = bindtest.Tensor(batch, n, 256), bindtest.Tensor(128)
	if _, err := rollout(b, o); err == nil || !strings.Contains(err.Error(), "use --device cpu") {
		t.Errorf("%d nodes: %v", n, err)
	}
}

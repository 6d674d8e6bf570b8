package cuda

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/fuse"
	"haul/internal/kernel/cuda/sequence"
	"haul/internal/model"
)

func agentShape(layers int, dropout float32) model.ADConfig {
	return model.ADConfig{Width: fuse.LayerWidth, Heads: 8, Layers: layers, Feed: fuse.LayerFeed, Positions: 328, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2,
		Dropout: dropout, AttentionDropout: dropout}
}

func kinds(p *kernel.Program) (out []string) {
	for _, op := range p.PerShard {
		out = append(out, op.Kind())
	}
	return out
}

// TestLayersAreJoined: a layer of the shape becomes its passes, forward and back, whose launches
// match the kernels.
func TestLayersAreJoined(t *testing.T) {
	kernels := declarations(t)
	for _, dropout := range []float32{0, 0.1} {
		p := agentStep(t, 1024, 164, agentShape(2, dropout))
		before := kinds(p)
		j := fuse.JoinLayers(p)
		begin := "layer.pack layer.pack"
		if dropout > 0 {
			begin = "layer.pack layer.masks layer.pack layer.masks"
		}
		want := strings.Fields(begin + " regions layer.embed linear causal layer.tail causal layer.tail layer.head " +
			"layer.tail.grad layer.dw causal.grad layer.tail.grad layer.dw causal.grad layer.qkv.grad layer.dw embed.grad")
		if got := kinds(j); !slices.Equal(got, want) {
			t.Errorf("dropout %v: joined\n%q\nwant\n%q", dropout, got, want)
		}
		if !slices.Equal(kinds(p), before) || len(p.Tensors) == len(j.Tensors) {
			t.Error("the recorded program was changed")
		}
		for _, l := range bindStep(t, fuse.KeepMasks(j), bind.BF16) {
			checkLaunch(t, kernels, l)
		}
	}
}

// TestOtherLayersAreLeft: another width, fewer heads of keys, a frozen forward pass, and a layer
// whose inside somebody reads keep the ops that were recorded.
func TestOtherLayersAreLeft(t *testing.T) {
	narrow := agentShape(1, 0.1)
	narrow.Width, narrow.Feed = 64, 256
	small := agentShape(1, 0.1)
	small.Feed = 256
	grouped := agentShape(2, 0.1)
	grouped.KVHeads = 2
	read := agentStep(t, 8, 20, agentShape(1, 0.1))
	for _, op := range read.PerShard {
		if l, ok := op.(*kernel.Linear); ok && l.Pre != nil {
			read.PerShard = append(read.PerShard, &kernel.Dropout{Y: l.Pre, X: l.Y})
			break
		}
	}
	for name, p := range map[string]*kernel.Program{"narrow": agentStep(t, 8, 20, narrow), "small": agentStep(t, 8, 20, small),
		"grouped": agentStep(t, 8, 20, grouped),
		"use":     agentUse(t, 8, agentShape(1, 0)),
		"read":    read} {
		if j := fuse.JoinLayers(p); j != p {
			t.Errorf("%s: joined %q", name, kinds(j))
		}
	}
}

// TestSharedKeysAreSaidToBeSlower: of layers that would be joined but for their heads' shared keys,
// where they are trained, and once per device.
func TestSharedKeysAreSaidToBeSlower(t *testing.T) {
	plain, grouped, small := agentShape(1, 0.1), agentShape(1, 0.1), agentShape(1, 0.1)
	grouped.KVHeads, small.KVHeads, small.Feed = 2, 2, 256
	for name, c := range map[string]struct {
		p    *kernel.Program
		said bool
	}{"plain": {agentStep(t, 8, 20, plain), false}, "grouped": {agentStep(t, 8, 20, grouped), true}, "small": {agentStep(t, 8, 20, small), false},
		"use": {agentUse(t, 8, grouped), false}} {
		if said := fuse.Remark(c.p, h200); (said != "") != c.said {
			t.Errorf("%s: %q", name, said)
		}
	}
	var heard []string
	d := &Device{remark: func(s string) { heard = append(heard, s) }}
	for _, s := range []string{"", "one", "two"} {
		d.tell(s)
	}
	if !slices.Equal(heard, []string{"one"}) {
		t.Errorf("told %q", heard)
	}
}

// TestEmbeddingsAtOddPlaces: tables that vectors cannot be read of are summed by a kernel of their
// own, and the norm follows.
func TestEmbeddingsAtOddPlaces(t *testing.T) {
	j := fuse.JoinLayers(agentStep(t, 8, 20, agentShape(1, 0)))
	at := slices.IndexFunc(j.PerShard, func(op kernel.Op) bool { return op.Kind() == "layer.embed" })
	o, b := j.PerShard[at].(*fuse.LayerEmbed), testBinder(j, bind.BF16)
	for _, odd := range []uint64{0, 4} {
		plain := b.Address
		b.Address = func(x *kernel.Tensor) uint64 {
			if slices.Contains(o.Embed.Tables, x) {
				return plain(x) + odd
			}
			return plain(x)
		}
		ls, err := o.Bind(b)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range ls {
			checkLaunch(t, declarations(t), l)
			got = append(got, l.Module)
		}
		if want := map[uint64]string{0: "layer_embed", 4: "embed"}[odd]; got[0] != want || len(got) != int(1+odd/4) {
			t.Errorf("tables %d bytes off: modules %q", odd, got)
		}
	}
}

// TestOtherHeadsAreLeft: a head of more columns than the kernel has, and one whose logits somebody
// reads, keep the ops that were recorded; the layers before it are joined all the same.
func TestOtherHeadsAreLeft(t *testing.T) {
	wide := agentShape(1, 0.1)
	wide.Actions = 6
	read := agentStep(t, 8, 20, agentShape(1, 0.1))
	for _, op := range read.PerShard {
		if o, ok := op.(*kernel.CrossEntropy); ok {
			read.PerShard = append(read.PerShard, &kernel.Dropout{Y: o.Logits, X: o.Logits})
		}
	}
	for name, p := range map[string]*kernel.Program{"wide": agentStep(t, 8, 20, wide), "read": read} {
		got := kinds(fuse.JoinLayers(p))
		if slices.Contains(got, "layer.head") || !slices.Contains(got, "layer.tail") || !slices.Contains(got, "crossentropy") {
			t.Errorf("%s: joined %q", name, got)
		}
	}
}

// TestStreamsGradientInBF16: the stream's gradient is handed on in bf16 from the head to the first
// layer, and to embeddings whose gradient rounds it anyway; where an op stays as recorded that
// takes part before, all of it stays in fp32.
func TestStreamsGradientInBF16(t *testing.T) {
	other := agentShape(2, 0.1)
	other.Actions = 6 // another head
	read := agentStep(t, 8, 20, agentShape(2, 0.1))
	at := 1 + slices.IndexFunc(read.PerShard, func(op kernel.Op) bool { _, ok := op.(*kernel.NormGrad); return ok }) // the head's
	for _, op := range read.PerShard {
		if o, ok := op.(*kernel.EmbedGrad); ok {
			read.PerShard = slices.Insert(read.PerShard, at, kernel.Op(&kernel.Dropout{Y: o.DY, X: o.DY}))
			break
		}
	}
	twice := agentStep(t, 8, 20, agentShape(2, 0.1))
	for _, op := range twice.PerShard {
		if o, ok := op.(*kernel.EmbedGrad); ok {
			twice.PerShard = append(twice.PerShard, &kernel.Dropout{Y: o.DY, X: o.DY})
			break
		}
	}
	large := agentShape(2, 0.1)
	large.Positions = 2 * sequence.EmbedRows
	bf16 := []string{"embed_products_compact", "layer_head", "layer_qkv_grad", "layer_tail_grad.layer_tail_grad", "layer_tail_grad.layer_tail_qkv_grad"}
	widens := slices.Replace(slices.Clone(bf16), 0, 1, "embed_products")
	widens[2] += "_widens"
	tables := slices.Delete(slices.Clone(widens), 0, 1)
	wide := []string{"embed_products", "layer_head_wide", "layer_qkv_grad_wide", "layer_tail_grad_wide.layer_tail_grad", "layer_tail_grad_wide.layer_tail_qkv_grad"}
	for name, c := range map[string]struct {
		p    *kernel.Program
		want []string
	}{
		"plain":         {agentStep(t, 8, 20, agentShape(2, 0.1)), bf16},
		"other head":    {agentStep(t, 8, 20, other), slices.Delete(slices.Clone(wide), 1, 2)},
		"read before":   {read, wide},
		"read after":    {twice, widens},
		"large of rows": {agentStep(t, 8, 20, large), tables},
	} {
		var got []string
		for _, l := range bindStep(t, fuse.KeepMasks(fuse.JoinLayers(c.p)), bind.BF16) {
			if name := l.Kernel; strings.HasPrefix(l.Module, "layer_tail_grad") {
				got = append(got, l.Module+"."+name)
			} else if strings.HasPrefix(name, "layer_head") || strings.HasPrefix(name, "layer_qkv_grad") || strings.HasPrefix(name, "embed_products") {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(slices.Compact(got), c.want) {
			t.Errorf("%s: kernels %q, want %q", name, got, c.want)
		}
	}
}

// TestOtherEmbeddingsAreLeft: embeddings that something is done to before the first norm keep the
// ops that were recorded.
func TestOtherEmbeddingsAreLeft(t *testing.T) {
	p := agentStep(t, 8, 20, agentShape(1, 0.1))
	at := slices.IndexFunc(p.PerShard, func(op kernel.Op) bool { return op.Kind() == "embed" })
	o := p.PerShard[at].(*kernel.Embed)
	stream := o.Y
	o.Y = new(*stream)
	p.PerShard = slices.Insert(p.PerShard, at+1, kernel.Op(&kernel.Dropout{Y: stream, X: o.Y}))
	if got := kinds(fuse.JoinLayers(p)); slices.Contains(got, "layer.embed") || !slices.Contains(got, "embed") || !slices.Contains(got, "layer.tail") {
		t.Errorf("joined %q", got)
	}
}

// TestMasksAreKept: attention that drops leaves its masks in memory, and its gradient reads them;
// without dropout, or without a gradient, nothing changes.
func TestMasksAreKept(t *testing.T) {
	kernels := declarations(t)
	narrow := agentShape(1, 0.6)
	narrow.Width, narrow.Feed = 64, 256 // heads of 8 columns
	for tokens, names := range map[int][2]string{
		attention.ShortTokens:       {"bf16_attention_short_made_16", "bf16_attention_grad_short_kept_16"},
		attention.ShortTokens + 1:   {"bf16_attention_made_16", "bf16_attention_grad_kept_16"},
		attention.PipedHeldFrom - 1: {"bf16_attention_made_16", "bf16_attention_long_grad_kept_16"},
		attention.PipedHeldFrom:     {"bf16_attention_piped_held_16", "bf16_attention_long_grad_kept_16"},
		attention.LongFrom - 1:      {"bf16_attention_piped_held_16", "bf16_attention_long_grad_kept_16"},
		attention.LongFrom:          {"bf16_attention_piped_16", "bf16_attention_long_grad_kept_16"},
	} {
		p := agentStep(t, 8, tokens, narrow)
		kept := fuse.KeepMasks(p)
		if !slices.Equal(kinds(kept), kinds(p)) || len(kept.Tensors) != len(p.Tensors)+1 {
			t.Errorf("%d tensors more: %q", len(kept.Tensors)-len(p.Tensors), kinds(kept))
		}
		seen := map[string]bool{}
		for _, l := range bindStep(t, kept, bind.BF16) {
			checkLaunch(t, kernels, l)
			seen[l.Kernel] = true
		}
		if !seen[names[0]] || !seen[names[1]] {
			t.Errorf("%d tokens: kernels %v", tokens, seen)
		}
	}
	wide := agentShape(1, 0.1)
	wide.Heads = 4 // heads of 32 columns make their own
	for name, p := range map[string]*kernel.Program{"whole": agentStep(t, 8, 20, agentShape(1, 0)), "use": agentUse(t, 8,
		agentShape(1, 0)), "wide": agentStep(t, 8, 20, wide)} {
		if fuse.KeepMasks(p) != p {
			t.Errorf("%s: changed", name)
		}
	}
}

// TestLayersWriteBeforeTheyRead: in the joined program every tensor of the shard is written before
// it is read, and only by ops that name it.
func TestLayersWriteBeforeTheyRead(t *testing.T) {
	written := map[*kernel.Tensor]bool{}
	for _, op := range fuse.KeepMasks(fuse.JoinLayers(agentStep(t, 8, 20, agentShape(3, 0.1)))).PerShard {
		op.Args(func(x *kernel.Tensor, a kernel.Access) {
			if x = x.Root(); x.Space == kernel.Shard && a != kernel.Write && !written[x] {
				t.Errorf("%s reads %v before anything wrote it", op.Kind(), x)
			}
		})
		op.Args(func(x *kernel.Tensor, a kernel.Access) {
			if a != kernel.Read {
				written[x.Root()] = true
			}
		})
	}
}

// TestStagesAreWholeBoxes: what the copy engine is told of a weight's operands, and of the rows
// of a tail's gradient, part by part: whole boxes of 64 columns, as many rows as a stage, a
// warpgroup or a block has, at places that it can read. The GELU and what comes through it are
// blocks of 64 columns.
func TestStagesAreWholeBoxes(t *testing.T) {
	const rows = 1024 * 164
	j := fuse.JoinLayers(agentStep(t, 1024, 164, agentShape(2, 0.1)))
	b := testBinder(j, bind.BF16)
	boxes := map[[2]int]int{} // by columns and rows of a box
	b.Tiled = func(m cu.Matrix) uint64 {
		if m.At%16 != 0 || m.Stride%8 != 0 || m.Cols%64 != 0 || m.Rows != rows && m.Rows != rows/bind.BatchParts || m.Stride != m.Cols {
			t.Errorf("%+v is no matrix for the copy engine", m)
		}
		if (m.Cols == fuse.LayerFeed) != (m.Blocks > 0) || m.Blocks > 0 && (m.Blocks != fuse.LayerFeed/64 || m.Rows != rows) {
			t.Errorf("%+v has %d blocks", m, m.Blocks)
		}
		boxes[[2]int{m.Cols, m.Box}]++
		return 1 << 20
	}
	if _, err := launchesOfAll(b, j.PerShard); err != nil {
		t.Fatal(err)
	}
	want := map[[2]int]int{}
	for _, tile := range fuse.LayerTiles { // both operands of each layer's
		want[[2]int{tile.N, tile.Stage}] += 2
		want[[2]int{tile.K, tile.Stage}] += 2
	}
	want[[2]int{fuse.LayerWidth, bind.LayerGroupRows}] += 3 * bind.BatchParts // the second norm of both layers, the first of the second
	want[[2]int{fuse.LayerWidth, bind.LayerGroupRows}] += 2 * bind.BatchParts // the stream's gradient
	want[[2]int{3 * fuse.LayerWidth, bind.LayerRows}] += bind.BatchParts      // dqkv of the second
	want[[2]int{fuse.LayerWidth, bind.LayerGroupRows}]++                      // and the first layer's own
	want[[2]int{3 * fuse.LayerWidth, bind.LayerGroupRows}]++
	if !maps.Equal(boxes, want) {
		t.Errorf("boxes %v, want %v", boxes, want)
	}
}

// TestLastGradientsShareTheCard: the gradients of the first layer's product, for its weight and for
// its inputs, have a multiprocessor each for all of their blocks.
func TestLastGradientsShareTheCard(t *testing.T) {
	j := fuse.JoinLayers(agentStep(t, 1024, 164, agentShape(1, 0)))
	blocks, b := 0, testBinder(j, bind.BF16)
	for _, op := range j.PerShard {
		weights, ok := op.(*fuse.LayerWeights)
		if ok = ok && weights.Own == nil; !ok && op.Kind() != "layer.qkv.grad" {
			continue
		}
		ls, err := op.(fuse.Joined).Bind(b)
		if err != nil {
			t.Fatal(err)
		}
		blocks += ls[0].Grid[0]
	}
	if blocks != b.SMs {
		t.Errorf("%d blocks for %d multiprocessors", blocks, b.SMs)
	}
}

package cuda

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
)

func agentShape(layers int, dropout float32) model.ADConfig {
	return model.ADConfig{Width: layerWidth, Heads: 8, Layers: layers, Feed: layerFeed, Positions: 328, Size: 9, Actions: 5,
		Dropout: dropout, AttentionDropout: dropout}
}

func kinds(p *kernel.Program) (out []string) {
	for _, op := range p.PerShard {
		out = append(out, op.Kind())
	}
	return out
}

// TestLayersAreJoined: a layer of the shape becomes its passes, forward and back, whose launches match the kernels.
func TestLayersAreJoined(t *testing.T) {
	kernels := entries(t)
	for _, dropout := range []float32{0, 0.1} {
		p := agentStep(t, 1024, 164, agentShape(2, dropout))
		before := kinds(p)
		j := joinLayers(p)
		begin := "layer.pack layer.pack"
		if dropout > 0 {
			begin = "layer.pack layer.masks layer.pack layer.masks"
		}
		want := strings.Fields(begin + " regions embed norm linear causal layer.tail linear causal layer.tail norm linear crossentropy " +
			"linear.dw linear.dx norm.grad " +
			"layer.tail.grad linear.dw linear.dw linear.dw causal.grad linear.dw layer.qkv.grad " +
			"layer.tail.grad linear.dw linear.dw linear.dw causal.grad linear.dw layer.qkv.grad embed.grad")
		if got := kinds(j); !slices.Equal(got, want) {
			t.Errorf("dropout %v: joined\n%q\nwant\n%q", dropout, got, want)
		}
		if !slices.Equal(kinds(p), before) || len(p.Tensors) == len(j.Tensors) {
			t.Error("the recorded program was changed")
		}
		for _, l := range bindStep(t, keepMasks(j), BF16) {
			checkLaunch(t, kernels, l)
		}
	}
}

// TestOtherLayersAreLeft: another width, a frozen forward pass, and a layer whose inside somebody reads keep the ops that were recorded.
func TestOtherLayersAreLeft(t *testing.T) {
	narrow := agentShape(1, 0.1)
	narrow.Width, narrow.Feed = 64, 256
	small := agentShape(1, 0.1)
	small.Feed = 256
	read := agentStep(t, 8, 20, agentShape(1, 0.1))
	for _, op := range read.PerShard {
		if l, ok := op.(*kernel.Linear); ok && l.Pre != nil {
			read.PerShard = append(read.PerShard, &kernel.Dropout{Y: l.Pre, X: l.Y})
			break
		}
	}
	for name, p := range map[string]*kernel.Program{"narrow": agentStep(t, 8, 20, narrow), "small": agentStep(t, 8, 20, small),
		"use":  agentUse(t, 8, agentShape(1, 0)),
		"read": read} {
		if j := joinLayers(p); j != p {
			t.Errorf("%s: joined %q", name, kinds(j))
		}
	}
}

// TestMasksAreKept: attention that drops reads the masks that an op before it makes, and so does its gradient; without dropout, or without
// a gradient, nothing changes.
func TestMasksAreKept(t *testing.T) {
	kernels := entries(t)
	narrow := agentShape(1, 0.6)
	narrow.Width, narrow.Feed = 64, 256 // heads of 8 columns
	p := agentStep(t, 8, 20, narrow)
	kept := keepMasks(p)
	if n := len(kept.PerShard) - len(p.PerShard); n != 1 || !slices.Contains(kinds(kept), "causal.masks") {
		t.Errorf("%d ops more: %q", n, kinds(kept))
	}
	for _, l := range bindStep(t, kept, BF16) {
		checkLaunch(t, kernels, l)
		if l.module == "bf16_attention" && !strings.Contains(l.kernel, "kept") {
			t.Errorf("%s makes masks", l.kernel)
		}
	}
	wide := agentShape(1, 0.1)
	wide.Heads = 4 // heads of 32 columns make their own
	for name, p := range map[string]*kernel.Program{"whole": agentStep(t, 8, 20, agentShape(1, 0)), "use": agentUse(t, 8,
		agentShape(1, 0)), "wide": agentStep(t, 8, 20, wide)} {
		if keepMasks(p) != p {
			t.Errorf("%s: changed", name)
		}
	}
}

// TestLayersWriteBeforeTheyRead: in the joined program every tensor of the shard is written before it is read, and only by ops that name
// it.
func TestLayersWriteBeforeTheyRead(t *testing.T) {
	written := map[*kernel.Tensor]bool{}
	for _, op := range keepMasks(joinLayers(agentStep(t, 8, 20, agentShape(3, 0.1)))).PerShard {
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

// TestLayerSizesMatchSource compares the sizes that Go knows with those of the kernels.
func TestLayerSizesMatchSource(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile("src/sequence/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text := read("layer.cuh") + read("layer_pack.cu") + read("layer_qkv_grad.cu")
	for name, want := range map[string]int{"layerWidth": layerWidth, "layerFeed": layerFeed, "pieceBytes": layerPiece,
		"qkvThreads": layerQKVThreads} {
		m := regexp.MustCompile(`\b` + name + ` = (\d+)`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("the sources have no %s", name)
			continue
		}
		if got, _ := strconv.Atoi(m[1]); got != want {
			t.Errorf("%s is %d in the sources, %d here", name, got, want)
		}
	}
	for name, want := range map[string]layerPass{"layer_tail.cu": layerForward, "layer_tail_grad.cu": layerBackward} {
		text := read(name)
		got := map[string]int{"layerFeed": layerFeed, "(layerFeed + 2 * layerWidth)": layerFeed + 2*layerWidth}
		number := func(of string) int {
			m := regexp.MustCompile(`#define LAYER_` + of + ` (.*)`).FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("%s does not say its %s", name, of)
			}
			if n, ok := got[m[1]]; ok {
				return n
			}
			n, _ := strconv.Atoi(m[1])
			return n
		}
		if got := (layerPass{number("GROUPS"), number("MATRICES"), number("BIASES"), number("SLOTS")}); got != want || got.shared() > 227<<10 {
			t.Errorf("a block of %s is %+v, here %+v, of %d bytes", name, got, want, got.shared())
		}
	}
}

// TestLayerTilesMatchSource compares the tiles of weights' gradients that Go knows with those that the kernels are built for.
func TestLayerTilesMatchSource(t *testing.T) {
	b, err := os.ReadFile("src/sequence/layer_dw.cu")
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]layerTile{}
	for _, m := range regexp.MustCompile(`(?m)^GRADIENT\((\w+), (\d+), (\d+), (\d+), (\d+), (\d+)\)$`).FindAllStringSubmatch(string(b), -1) {
		var n [5]int // groups, their blocks down and across, a stage's rows, stages
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+2])
		}
		built["layer_dw_"+m[1]] = layerTile{"layer_dw_" + m[1], 64 * n[0] * n[1], 128 * n[2], n[0], n[3], n[4]}
	}
	for shape, tile := range layerTiles {
		if built[tile.kernel] != tile {
			t.Errorf("%s is %+v in the sources, %+v here", tile.kernel, built[tile.kernel], tile)
		}
		if shape[0]%tile.rows != 0 || shape[1]%tile.columns != 0 || tile.shared() > 227<<10 {
			t.Errorf("%v is not whole tiles of %+v, or %d bytes of shared memory are too many", shape, tile, tile.shared())
		}
	}
}

// TestJoiningNeedsTheCard: the passes are built for one compute capability.
func TestJoiningNeedsTheCard(t *testing.T) {
	for _, c := range []struct {
		p            Precision
		major, minor int
		shared       int
		want         bool
	}{{BF16, 9, 0, 227 << 10, true}, {TF32, 9, 0, 227 << 10, false}, {BF16, 8, 0, 163 << 10, false}, {BF16, 10, 0, 227 << 10,
		false}, {BF16, 9, 0, 200 << 10, false}} {
		if got := joinsLayers(c.p, c.major, c.minor, c.shared); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

package fuse

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/sequence"
)

// TestLayerSizesMatchSource compares the sizes that Go knows with those of the kernels.
func TestLayerSizesMatchSource(t *testing.T) {
	text := ""
	for _, name := range []string{"layer.cuh", "layer_pack.cu", "layer_qkv_grad.cu", "layer_fold.cu", "layer_head.cu",
		"layer_embed.cu"} {
		b, err := os.ReadFile("../sequence/src/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	for name, want := range map[string]int{"layerWidth": LayerWidth, "layerFeed": LayerFeed, "layerThreads": layerThreads,
		"pieceBytes": layerPiece, "qkvThreads": layerQKVThreads, "foldThreads": layerFoldThreads, "foldRows": layerFoldRows,
		"headWidth": LayerWidth, "headColumns": headColumns, "headLosses": headLosses, "headThreads": headThreads, "headBlocks": headBlocks,
		"mostFields": sequence.EmbedTables, "embedWarps": layerEmbedWarps, "embedRows": layerEmbedRows} {
		m := regexp.MustCompile(`\b` + name + ` = (\d+)`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("the sources have no %s", name)
			continue
		}
		if got, _ := strconv.Atoi(m[1]); got != want {
			t.Errorf("%s is %d in the sources, %d here", name, got, want)
		}
	}
	// What a pass has in shared memory: its groups' matrices, what they lay aside, with bytes between
	// rows, its weights' slots with two barriers each, its biases, barriers of its own. A file with
	// WIDE has two ways.
	for _, c := range []struct {
		name string
		wide bool
		want int
	}{{"layer_tail.cu", true, layerShared}, {"layer_tail_grad.cu", true, layerWideShared}, {"layer_tail_grad.cu", false, layerGradShared}} {
		b, err := os.ReadFile("../sequence/src/" + c.name)
		if err != nil {
			t.Fatal(err)
		}
		source := string(b)
		if from, rest, ok := strings.Cut(source, "#ifdef WIDE\n"); ok {
			wide, rest, _ := strings.Cut(rest, "#else\n")
			narrow, rest, _ := strings.Cut(rest, "#endif\n")
			if c.wide {
				narrow = wide
			}
			source = from + narrow + rest
		}
		defined := func(name string) int {
			m := regexp.MustCompile(`(?m)^#define ` + name + ` (\d+)$`).FindStringSubmatch(source)
			if m == nil {
				return 0
			}
			n, _ := strconv.Atoi(m[1])
			return n
		}
		biases, stream := 0, 4
		if m := regexp.MustCompile(`LAYER_BIASES \(layerFeed \+ (\d+) \* layerWidth\)`).FindStringSubmatch(source); m != nil {
			biases, _ = strconv.Atoi(m[1])
		}
		if n := defined("LAYER_STREAM"); n != 0 {
			stream = n
		}
		got := 2*defined("LAYER_MATRICES")*layerGroup + bind.LayerRows*(LayerWidth*stream+defined("LAYER_PADDING")) +
			defined("LAYER_SLOTS")*(layerPiece+16) + 4*(LayerFeed+biases*LayerWidth) + 8*defined("LAYER_BARRIERS")
		if got != c.want || got > 227<<10 {
			t.Errorf("a block of %s (wide: %v) takes %d bytes of shared memory, %d here", c.name, c.wide, got, c.want)
		}
	}
}

// TestLayerTilesMatchSource compares the tiles of weights' gradients that Go knows with those that
// the kernels are built for.
func TestLayerTilesMatchSource(t *testing.T) {
	b, err := os.ReadFile("../sequence/src/layer_dw.cu")
	if err != nil {
		t.Fatal(err)
	}
	var built []layerTile
	var blocks []string // whether DY and X lie as blocks of columns
	for _, m := range regexp.MustCompile(`(?m)^  TILES\((\d), (\d+), (\d+), (\d+), (\d+), (\d+), (\d+), (\d+), (\w+, \w+)\)$`).FindAllStringSubmatch(string(b), -1) {
		var n [8]int // its place, N, K, groups, their blocks down and across, a stage's rows, stages
		blocks = append(blocks, m[9])
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+1])
		}
		if n[0] != len(built) {
			t.Errorf("weight %d stands at place %d", n[0], len(built))
		}
		built = append(built, layerTile{n[1], n[2], 64 * n[3] * n[4], 128 * n[5], n[3], n[6], n[7]})
	}
	if want := []string{"false, true", "true, false", "false, false", "false, false"}; !slices.Equal(blocks, want) {
		t.Errorf("operands in blocks of columns: %v, want the GELU and what comes through it", blocks)
	}
	if !slices.Equal(built, LayerTiles[:]) {
		t.Errorf("tiles are %+v in the sources, %+v here", built, LayerTiles)
	}
	for _, tile := range LayerTiles {
		if tile.N%tile.rows != 0 || tile.K%tile.columns != 0 || tile.shared() > 227<<10 || 128*tile.groups > layerWeightThreads {
			t.Errorf("%+v is not whole tiles, has too many threads, or %d bytes of shared memory are too many", tile, tile.shared())
		}
	}
}

// TestWeightShares: the weights whose gradients are made together have blocks in proportion to what
// they read, and no more in all than were asked for, but every one has some.
func TestWeightShares(t *testing.T) {
	for _, c := range []struct {
		blocks    int
		own, next bool
	}{{54, true, true}, {54, true, false}, {36, true, true}, {36, true, false}, {44, false, true}, {1, true, true}, {5, true, false}, {1, false, true}} {
		shares, blocks, least, most := weightShares(c.blocks, c.own, c.next), 0, 1.0, 0.0
		for i, tile := range LayerTiles {
			wanted := i == qkvWeight && c.next || i != qkvWeight && c.own
			if wanted != (shares[i] > 0) {
				t.Errorf("%+v: weight %d has %d shares", c, i, shares[i])
			}
			if blocks += tile.count() * shares[i]; wanted {
				reads := float64(tile.rows+tile.columns) / float64(shares[i]) / 1024 // of a block, per row
				least, most = min(least, reads), max(most, reads)
			}
		}
		if blocks > max(c.blocks, 18) || most > 1.01*least {
			t.Errorf("%+v: shares %v, %d blocks that read between %.3f and %.3f", c, shares, blocks, least, most)
		}
	}
}

// TestJoiningNeedsTheCard: the passes are built for one compute capability.
func TestJoiningNeedsTheCard(t *testing.T) {
	for _, c := range []struct {
		p            bind.Precision
		major, minor int
		shared       int
		want         bool
	}{{bind.BF16, 9, 0, 227 << 10, true}, {bind.TF32, 9, 0, 227 << 10, false}, {bind.BF16, 8, 0, 163 << 10, false}, {bind.BF16, 10, 0, 227 << 10,
		false}, {bind.BF16, 9, 0, 200 << 10, false}} {
		if got := JoinsLayers(c.p, c.major, c.minor, c.shared); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

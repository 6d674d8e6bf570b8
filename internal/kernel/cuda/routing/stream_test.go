package routing

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/bindtest"
)

// TestStreamSizesMatchSource compares the sizes that launches are made of with the source's.
func TestStreamSizesMatchSource(t *testing.T) {
	source := ""
	for _, name := range []string{"stream.cuh", "stream_nodes.cu"} {
		data, err := os.ReadFile(filepath.Join("src", name))
		if err != nil {
			t.Fatal(err)
		}
		source += string(data)
	}
	for name, want := range map[string]int{"BLOCK": streamBlock, "SLAB": streamSlab, "PAIR": headPair, "RING_PARTS": 3, "RING_BYTES": ringBytes / 3} {
		m := regexp.MustCompile(`#define ` + name + ` (\d+)`).FindStringSubmatch(source)
		if m == nil {
			t.Errorf("the source has no %s", name)
		} else if got, _ := strconv.Atoi(m[1]); got != want {
			t.Errorf("%s is %d in the source, %d here", name, got, want)
		}
	}
	if packedBlock != 2*halfWidth*streamBlock || pointerBytes != streamBlock/8*32*16 {
		t.Errorf("a block of a matrix has %d bytes, r of it %d", packedBlock, pointerBytes)
	}
	order := []string{"KEYS_ACROSS", "VALUES_DOWN", "POINTERS_ACROSS", "POINTERS_DOWN", "QUERIES", "KEY_ROWS", "VALUE_ROWS", "POINTER_ROWS"}
	if !strings.Contains(source, "enum { "+strings.Join(order, ", ")+" };") || order[pointersDown] != "POINTERS_DOWN" ||
		order[queries] != "QUERIES" || queries+rowMatrices != len(order) || order[allMatrices] != "KEY_ROWS" {
		t.Error("the list of matrices is another in the source")
	}
}

// TestStreamChunks: every instance belongs to one chunk of the gradient, and what lies between the
// kernels fits the budget, on a card that holds all and on a small one.
func TestStreamChunks(t *testing.T) {
	for _, memory := range []int{0, 8 << 30} {
		b := bindtest.New(256, bind.TF32)
		b.Memory = memory
		o := bindtest.RolloutGrad(bindtest.Rollout(256, 201, 8, 16, 200))
		ls, err := RolloutGrad(b, o)
		if err != nil {
			t.Fatal(err)
		}
		g, yes := streamGradServes(b, o, policyOf(b, &o.Decoder))
		if !yes {
			t.Fatal("201 nodes are not streamed")
		}
		next := 0
		for _, l := range ls {
			if !strings.HasPrefix(l.Kernel, "walk_") {
				continue
			}
			if at := l.Args[7].(uint64); at != b.Address(o.Steps)+uint64(4*next*g.starts) {
				t.Errorf("a chunk begins elsewhere than at instance %d", next)
			}
			if l.Grid[0] > 1 && l.Grid[0]*g.instanceBytes() > budget(b, streamScratch) {
				t.Errorf("a chunk of %d instances takes more than %d bytes", l.Grid[0], budget(b, streamScratch))
			}
			next += l.Grid[0]
		}
		if next != 256 {
			t.Errorf("chunks hold %d instances, want 256", next)
		}
	}
}

// TestRowWarps: few rows have all the warps that a block may have, many share a multiprocessor.
func TestRowWarps(t *testing.T) {
	s := stream{policy{heads: 4, hd: 32}, 7}
	for _, c := range []struct {
		rows, warps int
		kernel      string
	}{{1, 16, "row_few_32"}, {132, 16, "row_few_32"}, {133, 8, "row_stream_32"}, {396, 8, "row_stream_32"}, {397, 4, "row_ahead_32"}} {
		if warps, kernel := s.rowWarps(c.rows, 132); warps != c.warps || kernel != c.kernel {
			t.Errorf("%d rows: %d warps of %s, want %d of %s", c.rows, warps, kernel, c.warps, c.kernel)
		}
	}
}

// TestStartsShape: few starts are followed by teams, many by a warp a tile, and matrices are held
// as far as they leave room for as many warps.
func TestStartsShape(t *testing.T) {
	for _, c := range []struct {
		nodes, instances, starts int
		want                     startsShape
	}{
		{129, 256, 128, startsShape{1, 8, 2}}, // two blocks on a multiprocessor
		{129, 8, 128, startsShape{4, 1, 3}},
		{201, 256, 200, startsShape{1, 13, 3}},
		{501, 64, 100, startsShape{4, 4, 1}},
		{1001, 64, 100, startsShape{4, 4, 0}},
		{4096, 64, 100, startsShape{1, 4, 0}},
	} {
		s := stream{policy{n: c.nodes, d: halfWidth, heads: 4, hd: 32, columns: 1, seen: 1}, bind.Ceil(c.nodes, streamBlock)}
		got := s.startsShape(c.instances, bind.Ceil(c.starts, 16), 132, 227<<10)
		if got != c.want {
			t.Errorf("%d nodes, %d instances, %d starts: %+v, want %+v", c.nodes, c.instances, c.starts, got, c.want)
		}
		if shared := s.startsShared(got); shared > 227<<10 {
			t.Errorf("%d nodes: %d bytes of shared memory", c.nodes, shared)
		}
	}
}

// TestRowSplits: an instance's rows go to as many blocks as leave the fewest multiprocessors
// without one.
func TestRowSplits(t *testing.T) {
	for _, c := range []struct{ instances, most, want int }{
		{64, 100, 2},  // 128 blocks at once; three parts would take two rounds
		{128, 100, 1}, // all at once
		{132, 100, 1},
		{256, 100, 1},
		{1, 200, 132},
		{1, 7, 7},
		{100, 100, 5}, // 500 blocks in four rounds; one part each would leave a quarter of the card
		{512, 1, 1},
	} {
		if got := rowSplits(c.instances, 132, c.most); got != c.want {
			t.Errorf("%d instances in at most %d parts: %d, want %d", c.instances, c.most, got, c.want)
		}
	}
}

// TestWalker: a thread follows a start where starts are many, else a warp.
func TestWalker(t *testing.T) {
	for _, c := range []struct {
		nodes, starts, seen, threads int
		kernel                       string
	}{
		{129, 128, 1, 128, "walk_alone_256"}, {256, 8, 1, 32, "walk_alone_256"}, {257, 300, 1, 256, "walk_alone_512"},
		{512, 33, 1, 64, "walk_alone_512"}, {513, 100, 1, 128, "walk_alone_1024"}, {1024, 100, 1, 128, "walk_alone_1024"},
		{1025, 100, 1, 1024, "walk_stream_4096"}, {129, 7, 1, 224, "walk_stream_1024"}, {129, 128, 4, 1024, "walk_stream_1024"},
	} {
		g := streamGrad{stream: stream{policy: policy{n: c.nodes, seen: c.seen}}, starts: c.starts}
		if kernel, threads := g.walker(); kernel != c.kernel || threads != c.threads {
			t.Errorf("%d nodes, %d starts, %d features: %d threads of %s, want %d of %s", c.nodes, c.starts, c.seen, threads, kernel, c.threads, c.kernel)
		}
	}
}

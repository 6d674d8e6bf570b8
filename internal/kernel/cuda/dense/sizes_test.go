package dense

import (
	"fmt"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/bindtest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRowBoundsMatchSource compares the limits of the binders with those that the kernels are
// built for.
func TestRowBoundsMatchSource(t *testing.T) {
	for _, c := range []struct {
		file, pattern string
		want          int
	}{
		{"bf16_rows.cu", `warps = (\d+)`, normWarps}, {"bf16_rows.cu", `norm_rows<1, (\d+)>\(`, bf16NormRows}, {"bf16_rows.cu", `bf16_norm_grad_128, 1, 2, (\d+)`, bf16NormBlocks},
	} {
		source, err := os.ReadFile("src/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(c.pattern).FindSubmatch(source)
		if m == nil {
			t.Errorf("%s has no %s", c.file, c.pattern)
			continue
		}
		if got, _ := strconv.Atoi(string(m[1])); got != c.want {
			t.Errorf("%s: %s is %d, the binder has %d", c.file, c.pattern, got, c.want)
		}
	}
}

// TestBF16WorkMatchesSource compares the ways of summing with what the kernels are built for: tiles
// of 16 rows, chunks of 32 terms.
func TestBF16WorkMatchesSource(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"bf16_linear_short.cuh", fmt.Sprintf("shortWarps = %d, shortTiles = %d;", bf16Short.warps, bf16Short.rows/16)},
		{"bf16_linear_short.cuh", fmt.Sprintf("_short_%d, shortWarps, (short_sums<END, TURNED, %d>)", bf16Terms, bf16Terms/32)},
		{"bf16_linear_short.cuh", fmt.Sprintf("_short_%d, shortWarps, (short_sums<END, TURNED, %d>)", bf16Terms/2, bf16Terms/64)},
		{"bf16_linear_ring.cuh", fmt.Sprintf("plainWarps = %d, plainTiles = %d, longWarps = %d, longTiles = %d, longStages = %d;",
			bf16Plain.warps, bf16Plain.rows/16, bf16Long.warps, bf16Long.rows/16, bf16Long.staged/32)},
		{"bf16_linear_ring.cuh", fmt.Sprintf("_short_%d, plainWarps, (plain_sums<TURNED, %d>)", bf16Terms, bf16Plain.staged/32)},
		{"bf16_linear_ring.cuh", fmt.Sprintf("_short_%d, plainWarps, (plain_sums<TURNED, %d>)", bf16Terms/2, bf16Plain.staged/64)},
	} {
		source, err := os.ReadFile("src/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), c.want) {
			t.Errorf("%s has no %q", c.file, c.want)
		}
	}
}

// TestBF16PanelFits holds that a card with less shared memory takes narrower panels, not other
// kernels, and only where rows leave too little.
func TestBF16PanelFits(t *testing.T) {
	tensor := func(id int, compact bool, shape ...int) *kernel.Tensor {
		return &kernel.Tensor{Name: "t", Space: kernel.Shard, Compact: compact, Shape: shape, Stride: shape[len(shape)-1], ID: id}
	}
	for _, c := range []struct {
		kernel          string
		compact         bool
		terms, maxBytes int
		panels, shared  int
	}{
		{"linear_compact_short_128", true, 128, 227 << 10, 1, 512 * 260},
		{"linear_compact_short_128", true, 128, 163 << 10, 1, 512 * 260},
		{"linear_compact_short_128", true, 128, 99 << 10, 2, 256 * 260},
		{"linear_compact_short_64", true, 64, 99 << 10, 1, 512 * 132},
		{"linear_plain_short_128", false, 128, 227 << 10, 1, 512*260 + 64<<10},
		{"linear_plain_short_128", false, 128, 163 << 10, 2, 256*260 + 64<<10},
		{"linear_plain_short_64", false, 64, 99 << 10, 1, 512*132 + 32<<10},
	} {
		b := bindtest.BF16()
		b.MaxShared = c.maxBytes
		ls, _, err := Bind(b, &kernel.Linear{Y: tensor(1, c.compact, 4096, 512), X: tensor(2, true, 4096, c.terms), W: tensor(3, false, 512, c.terms)})
		if err != nil {
			t.Fatal(err)
		}
		if l := ls[0]; l.Kernel != c.kernel || l.Grid[1] != c.panels || l.Shared != c.shared {
			t.Errorf("%d bytes: %s in %d panels with %d bytes, want %s in %d with %d", c.maxBytes, l.Kernel, l.Grid[1], l.Shared, c.kernel, c.panels, c.shared)
		}
	}
}

// TestBF16TilesMatchSource compares the table of tiles with the shapes that the kernels are built
// for.
func TestBF16TilesMatchSource(t *testing.T) {
	source, err := os.ReadFile("src/bf16_linear_dw.cu")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`GRADIENT\((\w+), (\d), (\d), (\d), (\d), (\d)\)`).FindAllStringSubmatch(string(source), -1)
	if len(found) != len(bf16Tiles) {
		t.Fatalf("%d shapes in the source, %d in the table", len(found), len(bf16Tiles))
	}
	for i, h := range bf16Tiles {
		name := fmt.Sprintf("%dx%d", h.rows, h.columns)
		args := []int{h.rows / 16, h.columns / 64, h.warps, h.stages, h.resident}
		var ok bool
		for _, f := range found {
			n := func(i int) int { return int(f[i][0] - '0') }
			ok = ok || f[1] == name && fmt.Sprint([]int{n(2) * n(4), n(3), n(2) * n(3), n(5), n(6)}) == fmt.Sprint(args)
		}
		if !ok || h.kernel != "linear_dw_"+name {
			t.Errorf("tile %d, %s: the source has no such shape", i, h.kernel)
		}
	}
}

// TestTilesMatchSource compares the table of tiles with the shapes that the kernels are built for.
func TestTilesMatchSource(t *testing.T) {
	source, err := os.ReadFile("src/linear.cu")
	if err != nil {
		t.Fatal(err)
	}
	for _, tile := range append([]tile{odd}, tiles...) {
		name := tile.Name
		if name == "odd" {
			name = "small"
		}
		m := regexp.MustCompile(`typedef Shape<(\d+), (\d+), (\d+), (\d+), (\d+), (\d+), (\d+)> (?i:` + name + `);`).FindStringSubmatch(string(source))
		if m == nil {
			t.Errorf("src/linear.cu has no shape %s", name)
			continue
		}
		var v [7]int
		for i := range v {
			v[i], _ = strconv.Atoi(m[i+1])
		}
		want := []int{v[0], v[1], v[2] * v[3] * v[4], v[4] * v[5], v[6]}
		if diff := cmp.Diff(want, []int{tile.m, tile.n, tile.warps, tile.slabs, tile.stages}); diff != "" {
			t.Errorf("%s (-source +table):\n%s", tile.Name, diff)
		}
	}
}

// TestTilesFillTheCard: a large product takes large tiles, the layers of a small batch enough
// blocks for every multiprocessor.
func TestTilesFillTheCard(t *testing.T) {
	b := &bind.Binder{Chip: bind.Chip{SMs: 132}}
	for _, c := range []struct {
		m, n, copies int
		want         string
	}{
		{51712, 128, 1, "large"}, {51712, 512, 1, "large"}, {1408, 384, 1, "medium"}, {1408, 512, 1, "medium"}, {1408, 128, 1, "small"},
		{128, 128, 1, "small"}, {128, 128, 8, "small"}, {512, 128, 8, "medium"}, {128, 128, 32, "medium"},
	} {
		if got := Pick(b, c.m, c.n, c.copies, true).Name; got != c.want {
			t.Errorf("%d products of %d×%d: %s tiles, want %s", c.copies, c.m, c.n, got, c.want)
		}
	}
	if got := Pick(b, 51712, 128, 1, false).Name; got != "odd" {
		t.Errorf("operands without vectors: %s tiles, want odd", got)
	}
}

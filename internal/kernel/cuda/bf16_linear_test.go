package cuda

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"haul/internal/kernel"
)

// bf16Binder binds to made-up addresses, one tensor's far from another's.
func bf16Binder() *binder {
	const far = 1 << 40
	return &binder{precision: BF16, chip: chip{sms: 132, maxShared: 227 << 10}, cut: cut{lanes: 8}, seen: map[int]bool{},
		room: room{laneSize: 1 << 20,
			address: func(t *kernel.Tensor) uint64 { return uint64(t.ID+1) * far },
			bf16:    func(w *kernel.Tensor) uint64 { return uint64(w.ID+1)*far + far/4 },
			scratch: func(int) uint64 { return far / 2 }}}
}

// TestBF16LinearLaunches names the kernel that each shape takes, checks its launch against the PTX,
// and holds that nothing is refused.
func TestBF16LinearLaunches(t *testing.T) {
	kernels := entries(t)
	id := 0
	tensor := func(space kernel.Space, compact bool, shape ...int) *kernel.Tensor {
		id++
		return &kernel.Tensor{Name: "t", Space: space, Compact: compact, Shape: shape, Stride: shape[len(shape)-1], ID: id, Offset: id << 16}
	}
	act := func(rows, columns int) *kernel.Tensor { return tensor(kernel.Shard, true, rows, columns) }
	wide := func(rows, columns int) *kernel.Tensor { return tensor(kernel.Shard, false, rows, columns) }
	weight := func(shape ...int) *kernel.Tensor { return tensor(kernel.Weight, false, shape...) }
	grad := func(shape ...int) *kernel.Tensor { return tensor(kernel.Grad, false, shape...) }
	const m = 1024 * 164
	drop := kernel.Drop{Rate: 0.1, Site: 2, Nodes: 164}
	for _, c := range []struct {
		op   kernel.Op
		want string
	}{
		{&kernel.Linear{Y: act(m, 384), X: act(m, 128), W: weight(384, 128)}, "linear_compact_short_128"},
		{&kernel.Linear{Y: wide(m, 128), X: act(m, 128), W: weight(128, 128), Bias: weight(128), Residual: wide(m, 128), Drop: drop}, "linear_plain_short_128"},
		{&kernel.Linear{Y: act(m, 512), Pre: act(m, 512), X: act(m, 128), W: weight(512, 128), Bias: weight(512)}, "linear_gelu_short_128"},
		{&kernel.Linear{Y: wide(m, 128), X: act(m, 512), W: weight(128, 512), Bias: weight(128), Residual: wide(m, 128), Drop: drop}, "linear_plain_long_128"},
		{&kernel.Linear{Y: wide(m, 8), X: act(m, 128), W: weight(8, 128), Bias: weight(8)}, "linear_plain_short_128"},
		{&kernel.Linear{Y: wide(40960, 64), X: act(40960, 256), W: weight(64, 256), Bias: weight(64)}, "linear_plain_long_64"},
		{&kernel.Linear{Y: wide(70, 9), X: act(70, 128), W: weight(9, 128), Bias: weight(9)}, "any_product"},
		{&kernel.Linear{Y: act(70, 12), X: act(70, 12), W: weight(12, 12)}, "any_product"},
		{&kernel.Linear{Y: wide(70, 128), X: act(70, 768), W: weight(128, 768)}, "linear_plain_long_64"},
		{&kernel.Linear{Y: wide(70, 128), X: act(70, 2048), W: weight(128, 2048)}, "any_product"},
		{&kernel.Linear{Y: wide(70, 6), X: act(70, 128), W: weight(6, 128)}, "any_product"},
		{&kernel.LinearGradX{DX: act(m, 128), DY: act(m, 384), W: weight(384, 128)}, "linear_dx_compact_long_128"},
		{&kernel.LinearGradX{DX: act(m, 128), DY: act(m, 128), W: weight(128, 128)}, "linear_dx_compact_short_128"},
		{&kernel.LinearGradX{DX: act(m, 512), DY: act(m, 128), W: weight(128, 512), Pre: act(m, 512)}, "linear_dx_gelu_short_128"},
		{&kernel.LinearGradX{DX: act(m, 128), DY: wide(m, 8), W: weight(8, 128)}, "narrow linear_dx_compact_short_64"},
		{&kernel.LinearGradX{DX: wide(m, 128), DY: act(m, 128), W: weight(128, 128), Accumulate: true}, "linear_dx_plain_short_128"},
		{&kernel.LinearGradX{DX: act(m, 128), DY: act(m, 128), W: weight(128, 128), Accumulate: true}, "any_product"},
		{&kernel.LinearGradX{DX: act(70, 512), DY: act(70, 1280), W: weight(1280, 512)}, "linear_dx_compact_long_64"},
		{&kernel.LinearGradX{DX: act(70, 512), DY: act(70, 1288), W: weight(1288, 512)}, "linear_dx_plain_long_128 linear_dx_plain_long_128 linear_dx_plain_long_128 narrow"},
		{&kernel.LinearGradX{DX: act(70, 512), DY: act(70, 1536), W: weight(1536, 512)}, "linear_dx_plain_long_128 linear_dx_plain_long_128 linear_dx_plain_long_128 narrow"},
		{&kernel.LinearGradX{DX: wide(70, 512), DY: act(70, 1536), W: weight(1536, 512), Accumulate: true}, "linear_dx_plain_long_128 linear_dx_plain_long_128 linear_dx_plain_long_128"},
		{&kernel.LinearGradX{DX: act(70, 2048), DY: act(70, 1536), W: weight(1536, 2048), Pre: act(70, 2048)}, "any_product"},
		{&kernel.LinearGradW{DW: grad(384, 128), DY: act(m, 384), X: act(m, 128)}, "linear_dw_192x128 linear_dw_sum"},
		{&kernel.LinearGradW{DW: grad(128, 128), DBias: grad(128), DY: act(m, 128), X: act(m, 128)}, "linear_dw_128x128 linear_dw_sum"},
		{&kernel.LinearGradW{DW: grad(512, 128), DBias: grad(512), DY: act(m, 512), X: act(m, 128)}, "linear_dw_256x128 linear_dw_sum"},
		{&kernel.LinearGradW{DW: grad(128, 512), DBias: grad(128), DY: act(m, 128), X: act(m, 512)}, "linear_dw_128x256 linear_dw_sum"},
		{&kernel.LinearGradW{DW: grad(8, 128), DBias: grad(8), DY: wide(m, 8), X: act(m, 128)}, "narrow linear_dw_128x128 linear_dw_sum"},
		{&kernel.LinearGradW{DW: grad(12, 12), DBias: grad(12), DY: act(70, 12), X: act(70, 12)}, "any_product"},
	} {
		ls, err := bf16Binder().bind(c.op)
		if err != nil {
			t.Errorf("%s: %v", c.op.Kind(), err)
			continue
		}
		var names []string
		for _, l := range ls {
			names = append(names, l.kernel)
			checkLaunch(t, kernels, l)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.op.Kind(), got, c.want)
		}
	}
}

// TestBF16WorkMatchesSource compares the ways of summing with what the kernels are built for: tiles
// of 16 rows, chunks of 32 terms.
func TestBF16WorkMatchesSource(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"dense/bf16_linear_short.cuh", fmt.Sprintf("shortWarps = %d, shortTiles = %d;", bf16Short.warps, bf16Short.rows/16)},
		{"dense/bf16_linear_short.cuh", fmt.Sprintf("_short_%d, shortWarps, (short_sums<END, TURNED, %d>)", bf16Terms, bf16Terms/32)},
		{"dense/bf16_linear_short.cuh", fmt.Sprintf("_short_%d, shortWarps, (short_sums<END, TURNED, %d>)", bf16Terms/2, bf16Terms/64)},
		{"dense/bf16_linear_ring.cuh", fmt.Sprintf("plainWarps = %d, plainTiles = %d, longWarps = %d, longTiles = %d, longStages = %d;",
			bf16Plain.warps, bf16Plain.rows/16, bf16Long.warps, bf16Long.rows/16, bf16Long.staged/32)},
		{"dense/bf16_linear_ring.cuh", fmt.Sprintf("_short_%d, plainWarps, (plain_sums<TURNED, %d>)", bf16Terms, bf16Plain.staged/32)},
		{"dense/bf16_linear_ring.cuh", fmt.Sprintf("_short_%d, plainWarps, (plain_sums<TURNED, %d>)", bf16Terms/2, bf16Plain.staged/64)},
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
		b := bf16Binder()
		b.maxShared = c.maxBytes
		ls, err := b.bind(&kernel.Linear{Y: tensor(1, c.compact, 4096, 512), X: tensor(2, true, 4096, c.terms), W: tensor(3, false, 512, c.terms)})
		if err != nil {
			t.Fatal(err)
		}
		if l := ls[0]; l.kernel != c.kernel || l.grid[1] != c.panels || l.shared != c.shared {
			t.Errorf("%d bytes: %s in %d panels with %d bytes, want %s in %d with %d", c.maxBytes, l.kernel, l.grid[1], l.shared, c.kernel, c.panels, c.shared)
		}
	}
}

// TestBF16TilesMatchSource compares the table of tiles with the shapes that the kernels are built
// for.
func TestBF16TilesMatchSource(t *testing.T) {
	source, err := os.ReadFile("src/dense/bf16_linear_dw.cu")
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

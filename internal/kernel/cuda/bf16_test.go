package cuda

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bindtest"
	"haul/internal/kernel/cuda/dense"
)

func bf16Tensor(compact bool, shape ...int) *kernel.Tensor {
	return &kernel.Tensor{Name: "t", Shape: shape, Stride: shape[len(shape)-1], Compact: compact}
}

// TestBF16LaunchesMatchPTX: every width of a head, with and without dropout, has kernels that take
// what is passed and fit a multiprocessor.
func TestBF16LaunchesMatchPTX(t *testing.T) {
	kernels := declarations(t)
	for _, s := range []struct {
		b, t, heads, hd int
		rate            float32
	}{
		{1024, 164, 8, 16, 0.1}, {1024, 164, 8, 16, 0}, {1, 1, 1, 8, 0.5}, {3, 80, 3, 24, 0.1}, {2, 512, 16, 32, 0.1}, {2, 512, 2, 64, 0}, {2, 512, 8, 64, 0.1}, {5, 33, 6, 40, 0.1},
		{164, 1024, 8, 16, 0.1}, {41, 4096, 8, 16, 0.1}, {1, 8192, 2, 16, 0}, {1, 8192, 2, 32, 0}, {1, 4000, 2, 64, 0.1},
	} {
		t.Run(fmt.Sprintf("B=%d,T=%d,H=%d,hd=%d,drop=%g", s.b, s.t, s.heads, s.hd, s.rate), func(t *testing.T) {
			d, rows := s.heads*s.hd, s.b*s.t
			x, y, qkv, sums := bf16Tensor(false, s.b, s.t, d), bf16Tensor(true, s.b, s.t, d), bf16Tensor(true, s.b, s.t, 3*d), bf16Tensor(false, s.b, s.heads, s.t)
			stats, first, weight := bf16Tensor(false, rows), bf16Tensor(false, s.b, s.t), bf16Tensor(false, d)
			drop := kernel.Drop{Rate: s.rate, Site: 3, Nodes: s.t}
			b := bindtest.BF16()
			for _, op := range []kernel.Op{
				&kernel.CausalAttention{Y: y, LogSum: sums, QKV: qkv, First: first, Heads: s.heads, Drop: drop},
				&kernel.CausalAttentionGrad{DQKV: qkv, DY: y, Y: y, LogSum: sums, QKV: qkv, First: first, Heads: s.heads, Drop: drop},
				&kernel.Norm{Y: y, Mean: stats, Rstd: stats, X: x, Gamma: weight, Beta: weight},
				&kernel.NormGrad{DX: x, DGamma: weight, DBeta: weight, DY: y, X: x, Mean: stats, Rstd: stats, Gamma: weight, Accumulate: true},
				&kernel.Dropout{Y: y, X: x, Drop: drop},
				&kernel.Dropout{Y: x, X: y, Residual: x, Drop: drop},
			} {
				ls, err := launchesOf(b, op)
				if d > dense.Bf16RowMost && strings.HasPrefix(op.Kind(), "norm") {
					if err == nil {
						t.Errorf("%s: rows of %d columns bound", op.Kind(), d)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", op.Kind(), err)
				}
				for _, l := range ls {
					checkLaunch(t, kernels, l)
				}
			}
		})
	}
}

// TestBF16Refuses: one line where a shape or a mixture of precisions has no kernel.
func TestBF16Refuses(t *testing.T) {
	attention := func(d, heads, tokens int, compact bool) kernel.Op {
		return &kernel.CausalAttention{Y: bf16Tensor(compact, 2, tokens, d), LogSum: bf16Tensor(false, 2, heads, tokens), QKV: bf16Tensor(true, 2, tokens, 3*d),
			First: bf16Tensor(false, 2, tokens), Heads: heads}
	}
	for _, c := range []struct {
		op   kernel.Op
		want string
	}{
		{attention(24, 2, 9, true), "heads of 12 columns"},
		{attention(256, 2, 9, true), "heads of 128 columns"},
		{attention(16, 1, 9, false), "is in fp32"},
		{&kernel.Norm{Y: bf16Tensor(true, 4, 6), X: bf16Tensor(false, 4, 6)}, "rows of 6 columns"},
		{&kernel.Norm{Y: bf16Tensor(true, 4, 8), X: bf16Tensor(true, 4, 8)}, "residual stream"},
	} {
		if _, err := launchesOf(bindtest.BF16(), c.op); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.op.Kind(), err, c.want)
		}
	}
}

// TestBF16LinearLaunches names the kernel that each shape takes, checks its launch against the PTX,
// and holds that nothing is refused.
func TestBF16LinearLaunches(t *testing.T) {
	kernels := declarations(t)
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
		ls, err := launchesOf(bindtest.BF16(), c.op)
		if err != nil {
			t.Errorf("%s: %v", c.op.Kind(), err)
			continue
		}
		var names []string
		for _, l := range ls {
			names = append(names, l.Kernel)
			checkLaunch(t, kernels, l)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.op.Kind(), got, c.want)
		}
	}
}

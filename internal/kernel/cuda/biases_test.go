package cuda

import (
	"testing"

	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/bindtest"
	"haul/internal/kernel/cuda/routing"
)

// TestBiasesOfEveryChunk: where a gradient is made some instances at a time, each time leaves the
// gradient of its own instances' biases where back_pairs looks for it, after the decisions that it
// sums and before others take their place.
func TestBiasesOfEveryChunk(t *testing.T) {
	const batch, n, heads, hd, starts = 200, 101, 8, 16, 100
	for _, c := range []struct {
		precision    bind.Precision
		rows, bias   string
		loads, least int
	}{{bind.BF16, "decide_rows_16", "bias_sorted", 16, 5}, {bind.FP32, "grad_rows", "bias_listed", 1, 3}} {
		b := bindtest.New(batch, c.precision)
		b.Memory = 1 << 32
		o := bindtest.RolloutGrad(bindtest.Rollout(batch, n, heads, hd, starts))
		o.Pair, o.PairContext = bindtest.Tensor(batch, n, 2*heads*hd), bindtest.Tensor(heads*hd)
		o.DPair, o.DPairContext = bindtest.Tensor(batch, n, 2*heads*hd), bindtest.Tensor(heads*hd)
		o.DPairContext.Offset = 1 << 10
		ls, err := routing.RolloutGrad(b, o)
		if err != nil {
			t.Fatal(err)
		}
		var tables uint64
		launches := make([]ready, len(ls))
		for i, l := range ls {
			launches[i] = ready{beside: l.Beside, aside: l.Aside}
			if l.Kernel == "back_pairs" {
				tables = l.Args[2].(uint64)
			}
		}
		earlier := ancestors[int]{}
		next, done, rows, chunks := 0, 0, -1, []int(nil)
		if _, err := chain(launches, nil, func(_ ready, wait []int) (int, error) {
			i := next
			next++
			earlier.add(i, wait)
			switch l := ls[i]; l.Kernel {
			case c.rows:
				if rows = i; len(chunks) > 0 && !earlier[i][chunks[len(chunks)-1]] {
					t.Errorf("%s: decisions of chunk %d may be written before those of the last are summed", c.precision, len(chunks))
				}
			case c.bias:
				if want := tables + uint64(4*done*(n+c.loads)*112); l.Args[0] != want {
					t.Errorf("%s: biases from instance %d on are at %#x, want %#x", c.precision, done, l.Args[0], want)
				}
				if !earlier[i][rows] {
					t.Errorf("%s: decisions of chunk %d may be summed before they are written", c.precision, len(chunks))
				}
				chunks, done = append(chunks, i), done+l.Grid[0]
			case "back_pairs":
				for k, j := range chunks {
					if !earlier[i][j] {
						t.Errorf("%s: pairs may be done before chunk %d", c.precision, k)
					}
				}
			}
			return i, nil
		}); err != nil {
			t.Fatal(err)
		}
		if tables == 0 || done != batch || len(chunks) < c.least {
			t.Errorf("%s: %d of %d instances in %d chunks, tables at %#x", c.precision, done, batch, len(chunks), tables)
		}
	}
}

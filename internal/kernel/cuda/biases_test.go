package cuda

import (
	"strings"
	"testing"
)

// TestTooManyNodesTakeNoMemory: what a card cannot decode is refused as that, and not for want of
// the memory of its table of pairs.
func TestTooManyNodesTakeNoMemory(t *testing.T) {
	const batch, n = 64, 20001
	b := hopper(batch, BF16)
	b.scratch = func(bytes int) uint64 {
		t.Errorf("%d bytes are reserved for a rollout of %d nodes", bytes, n)
		return 1 << 40
	}
	o := rolloutOf(batch, n, 8, 16, 1)
	o.Pair, o.PairContext = tensor(batch, n, 256), tensor(128)
	if _, err := b.rollout(o); err == nil || !strings.Contains(err.Error(), "use --device cpu") {
		t.Errorf("%d nodes: %v", n, err)
	}
}

// TestBiasesOfEveryChunk: where a gradient is made some instances at a time, each time leaves the
// gradient of its own instances' biases where back_pairs looks for it, after the decisions that it
// sums and before others take their place.
func TestBiasesOfEveryChunk(t *testing.T) {
	const batch, n, heads, hd, starts = 200, 101, 8, 16, 100
	for _, c := range []struct {
		precision    Precision
		rows, bias   string
		loads, least int
	}{{BF16, "decide_rows_16", "bias_sorted", 16, 5}, {FP32, "grad_rows", "bias_listed", 1, 3}} {
		b := hopper(batch, c.precision)
		b.memory = 1 << 32
		o := gradOf(rolloutOf(batch, n, heads, hd, starts))
		o.Pair, o.PairContext = tensor(batch, n, 2*heads*hd), tensor(heads*hd)
		o.DPair, o.DPairContext = tensor(batch, n, 2*heads*hd), tensor(heads*hd)
		o.DPairContext.Offset = 1 << 10
		ls, err := b.rolloutGrad(o)
		if err != nil {
			t.Fatal(err)
		}
		var tables uint64
		launches := make([]ready, len(ls))
		for i, l := range ls {
			launches[i] = ready{beside: l.beside, aside: l.aside}
			if l.kernel == "back_pairs" {
				tables = l.args[2].(uint64)
			}
		}
		earlier := ancestors[int]{}
		next, done, rows, chunks := 0, 0, -1, []int(nil)
		if _, err := chain(launches, nil, func(_ ready, wait []int) (int, error) {
			i := next
			next++
			earlier.add(i, wait)
			switch l := ls[i]; l.kernel {
			case c.rows:
				if rows = i; len(chunks) > 0 && !earlier[i][chunks[len(chunks)-1]] {
					t.Errorf("%s: decisions of chunk %d may be written before those of the last are summed", c.precision, len(chunks))
				}
			case c.bias:
				if want := tables + uint64(4*done*(n+c.loads)*112); l.args[0] != want {
					t.Errorf("%s: biases from instance %d on are at %#x, want %#x", c.precision, done, l.args[0], want)
				}
				if !earlier[i][rows] {
					t.Errorf("%s: decisions of chunk %d may be summed before they are written", c.precision, len(chunks))
				}
				chunks, done = append(chunks, i), done+l.grid[0]
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

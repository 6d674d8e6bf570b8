package cpu

import (
	"context"
	"errors"
	"slices"
	"testing"

	"haul/internal/kernel/cpu/isa/isatest"
)

func TestBenchProducts(t *testing.T) {
	p := Products{Batch: 6, Shard: 3, Layers: [][2]int{{5, 7}, {8, 4}}}
	var cases [][2]string
	for _, set := range Sets() {
		cases = append(cases, [2]string{"fp32", set})
	}
	for _, set := range TileSets() {
		cases = append(cases, [2]string{"bf16", set})
	}
	for i, c := range cases {
		// The pool is the same whatever multiplies: the fastest of each precision, plain Go, and a set
		// that is called by another name.
		if isatest.Raced && i > 0 || i > 0 && c[1] != "go" && c != [2]string{"bf16", TileSets()[0]} && c != [2]string{"bf16", "avx512"} {
			continue
		}
		last, set := 0, c[1]
		if c == [2]string{"bf16", "avx512"} && slices.Contains(TileSets(), "avx512_bf16") {
			set = "avx512_bf16" // what the set has without tile registers
		}
		r, err := BenchProducts(context.Background(), c[0], c[1], 2, 1, p, func(done, total int) { last = total - done })
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Rows) != 12 || last != 0 || r.Set != set || r.Precision != c[0] || r.Workers != 2 || !(r.Peak > 0) {
			t.Fatalf("%s: %+v", set, r)
		}
		for _, row := range r.Rows {
			if !(row.Seconds > 0 && row.Rate > 0 && row.Share > 0 && row.Quiet > 0) {
				t.Errorf("%s: %+v", set, row)
			}
		}
		if dw := r.Rows[5]; dw.Kind != "dW" || dw.M != 4 || dw.K != 6 || dw.N != 8 {
			t.Errorf("gradient of the second layer's weights is %+v", dw)
		}
	}
}

func TestBenchProductsRefuses(t *testing.T) {
	p := Products{Batch: 6, Shard: 3, Layers: [][2]int{{5, 7}}}
	quiet := func(int, int) {}
	if _, err := BenchProducts(context.Background(), "", "mmx", 1, 1, p, quiet); err == nil {
		t.Error("took an instruction set that does not exist")
	}
	if _, err := BenchProducts(context.Background(), "", "", 7, 1, p, quiet); err == nil {
		t.Error("took more workers than rows")
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := BenchProducts(gone, "", "", 1, 1, p, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A round that the peak loop lost to a neighbour must not count as the product's best.
func TestFastTenth(t *testing.T) {
	rates := []float64{5, 1, 9, 2, 8, 3, 7, 4, 6, 10, 11}
	if got := fastTenth(rates); got != 10 {
		t.Errorf("one in ten of %v reaches %g, want 10", rates, got)
	}
}

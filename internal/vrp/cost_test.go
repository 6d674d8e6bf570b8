package vrp

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestCostsAgree compares the batched cost, the plain loop and the float64 cost of a Problem.
// Tolerance: each of T legs is a float32 with a few roundings of 2^-24 relative, and a sum of T
// positive terms adds at most T more, so (T+4)·2^-24 of the cost bounds either float32 path.
func TestCostsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		src := gridSource(rapid.Uint64().Draw(t, "seed"), n)
		src.Distribution = rapid.SampledFrom([]Distribution{Grid, Uniform}).Draw(t, "distribution")
		b := NewBatch(rapid.IntRange(1, 9).Draw(t, "batch"), n, 0)
		src.Fill(b, 0)
		tours, stride := randomTours(b)
		// Padding of either parity: the batched loop takes legs in pairs.
		pad := rapid.IntRange(0, 3).Draw(t, "pad")
		padded := make([]int32, b.B*(stride+pad))
		for i := range b.B {
			copy(padded[i*(stride+pad):], tours[i*stride:(i+1)*stride])
		}
		out := make([]float32, b.B)
		b.Costs(out, padded, stride+pad)
		for i := range b.B {
			lo, hi := i*(n+1), (i+1)*(n+1)
			tour := tours[i*stride : (i+1)*stride]
			want := b.Problem(i).Cost(FromTour(tour))
			within := float64(stride+4) * 0x1p-24 * want
			plain := RouteCost(b.X[lo:hi], b.Y[lo:hi], tour)
			if math.Abs(float64(plain)-want) > within || math.Abs(float64(out[i])-want) > within {
				t.Fatalf("instance %d: batched %v, plain %v, exact %v, tolerance %v", i, out[i], plain, want, within)
			}
		}
	})
}

func TestCostsOfShortRows(t *testing.T) {
	b := &Batch{B: 1, N: 1, X: []float32{0, 0.3}, Y: []float32{0, 0.4}, Demand: []int32{0, 1}, Capacity: 1}
	for _, c := range []struct {
		tour []int32
		want float32
	}{{[]int32{0}, 0}, {[]int32{0, 0}, 0}, {[]int32{0, 1, 0}, 1}, {[]int32{0, 1, 0, 0}, 1}} {
		out := []float32{-1}
		b.Costs(out, c.tour, len(c.tour))
		if math.Abs(float64(out[0]-c.want)) > 1e-6 {
			t.Errorf("cost of %v is %v, want %v", c.tour, out[0], c.want)
		}
	}
}

func TestCostsAllocateNothing(t *testing.T) {
	b := NewBatch(128, 10, 30)
	gridSource(1, 10).Fill(b, 0)
	tours, stride := randomTours(b)
	out := make([]float32, b.B)
	if n := testing.AllocsPerRun(20, func() { b.Costs(out, tours, stride) }); n != 0 {
		t.Errorf("Costs allocates %v times", n)
	}
}

func TestCostsRefusesSmallBuffers(t *testing.T) {
	b := NewBatch(2, 3, 30)
	for name, call := range map[string]func(){
		"out":    func() { b.Costs(make([]float32, 1), make([]int32, 10), 5) },
		"tours":  func() { b.Costs(make([]float32, 2), make([]int32, 9), 5) },
		"stride": func() { b.Costs(make([]float32, 2), nil, 0) },
		"node":   func() { b.Costs(make([]float32, 2), []int32{0, 4, 0, 0, 1, 0}, 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Costs accepts a wrong %s", name)
				}
			}()
			call()
		}()
	}
}

func TestCPC(t *testing.T) {
	if got := CPC(5, 10); got != 0.5 {
		t.Errorf("CPC(5, 10) = %v, want 0.5", got)
	}
}

package cpu

import (
	"math"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// TestUpdatePacks: after steps the packed forms that products read are those of the weights as the
// optimizer left them, in every precision.
func TestUpdatePacks(t *testing.T) {
	for _, precision := range []string{"fp32", "bf16"} {
		t.Run(precision, func(t *testing.T) {
			dev, err := Open(Options{Precision: precision, Workers: 2, ShardRows: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			l := &kernel.Layout{}
			const n, k, rows = 19, 37, 9
			at := l.Params[l.Add("w", kernel.InitUniform, k, n, k)].Offset
			tensor := func(name string, space kernel.Space, cols int) *kernel.Tensor {
				return &kernel.Tensor{Name: name, Space: space, Shape: []int{4, cols}, Stride: cols}
			}
			x, y, dy, dx := tensor("x", kernel.Batch, k), tensor("y", kernel.Batch, n), tensor("dy", kernel.Batch, n), tensor("dx", kernel.Batch, k)
			w := &kernel.Tensor{Name: "w", Space: kernel.Weight, Shape: []int{n, k}, Stride: k, Offset: at}
			g := &kernel.Tensor{Name: "dw", Space: kernel.Grad, Shape: []int{n, k}, Stride: k, Offset: at}
			p := &kernel.Program{Name: "packs", Batch: rows, Shard: 4, Layout: l, Sets: 1, Tensors: []*kernel.Tensor{x, y, dy, dx, w, g},
				PerShard: []kernel.Op{&kernel.Linear{Y: y, X: x, W: w}, &kernel.LinearGradX{DX: dx, DY: dy, W: w}, &kernel.LinearGradW{DW: g, DY: dy, X: x}},
				Once:     []kernel.Op{&kernel.Reduce{Layout: l, Every: 1}, &kernel.AdamW{Layout: l, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}}}
			for i, t := range p.Tensors {
				t.ID = i
			}
			made, err := dev.NewStore(l, true)
			if err != nil {
				t.Fatal(err)
			}
			replay, err := dev.Compile(p, []kernel.Store{made})
			if err != nil {
				t.Fatal(err)
			}
			fill := func(t *kernel.Tensor, scale float32) {
				v := make([]float32, rows*t.Cols())
				for i := range v {
					v[i] = scale * float32(i%13-6)
				}
				if err := replay.WriteBatch(t, v); err != nil {
					panic(err)
				}
			}
			fill(x, 0.3)
			fill(dy, 0.2)
			if err := replay.SetControl(kernel.Control{LearningRate: 0.1, Temperature: 1}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := replay.Run(); err != nil {
					t.Fatal(err)
				}
			}
			s := made.(*run.Store)
			forward, transposed := isa.PackSizes(s.Tiles, n, k)
			want, turned := make([]float32, forward), make([]float32, transposed)
			isa.PackForward(s.Tiles, want, s.Weights[at:][:n*k], n, k)
			isa.PackTransposed(s.Tiles, turned, s.Weights[at:][:n*k], n, k)
			moved := false
			for i, v := range want {
				moved = moved || v != 0
				if math.Float32bits(v) != math.Float32bits(s.Packs[0].Forward[i]) {
					t.Fatalf("forward pack, word %d: %x, want %x", i, math.Float32bits(s.Packs[0].Forward[i]), math.Float32bits(v))
				}
			}
			for i, v := range turned {
				if math.Float32bits(v) != math.Float32bits(s.Packs[0].Transposed[i]) {
					t.Fatalf("transposed pack, word %d: %x, want %x", i, math.Float32bits(s.Packs[0].Transposed[i]), math.Float32bits(v))
				}
			}
			if !moved {
				t.Fatal("the steps moved no weight")
			}
		})
	}
}

// TestLanesOfADevice: the order of a gradient's sums is a part of a run's bits, so that it is the
// same wherever nobody asks for another.
func TestLanesOfADevice(t *testing.T) {
	for asked, want := range map[int]int{0: 8, 3: 3} {
		for _, workers := range []int{0, 1, 5} {
			dev, err := Open(Options{Workers: workers, Lanes: asked})
			if err != nil {
				t.Fatal(err)
			}
			if dev.Lanes != want {
				t.Errorf("%d lanes asked for, %d workers: %d", asked, workers, dev.Lanes)
			}
			dev.Close()
		}
	}
}

package plan_test

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/plan"
)

// Reversing the tape ends where data comes in: from the host, or from an op that was appended as having no gradient.
func TestGradientsEndAtData(t *testing.T) {
	var l kernel.Layout
	w := l.Add("w", kernel.InitUniform, 4, 3, 4)
	for name, c := range map[string]struct {
		input func(p *plan.Plan) *kernel.Tensor
		want  int
	}{
		"host": {func(p *plan.Plan) *kernel.Tensor { return p.Rows("x", p.B(), 2, 4) }, 0},
		"appended": {func(p *plan.Plan) *kernel.Tensor {
			x := p.Shard("x", p.B(), 2, 4)
			p.Append(&kernel.Dropout{Y: x, X: p.Rows("raw", p.B(), 2, 4), Drop: kernel.Drop{Nodes: 2}})
			return x
		}, 0},
		"recorded": {func(p *plan.Plan) *kernel.Tensor { return p.Dropout("x", p.Rows("raw", p.B(), 2, 4), nil, 0.5, 1, 1) }, 1},
	} {
		p := plan.New(name, reference.New[float64](2), 2, 2, &l)
		y := p.Linear("y", c.input(p), p.Weight(0, w), nil, nil)
		seed := p.Shard("seed", y.Shape...)
		p.Append(&kernel.Dropout{Y: seed, X: y, Drop: kernel.Drop{Nodes: 2}})
		p.SeedGrad(y, seed)
		p.Backward()
		weights, inputs := 0, 0
		for _, op := range p.Program().PerShard {
			switch op.(type) {
			case *kernel.LinearGradW:
				weights++
			case *kernel.LinearGradX:
				inputs++
			}
		}
		if weights != 1 || inputs != c.want {
			t.Errorf("%s: %d gradients of weights and %d of inputs, want 1 and %d", name, weights, inputs, c.want)
		}
	}
}

// peer counts nothing: it is there to be found.
type peer struct{}

func (peer) Exchange([]float32) error { return nil }

func (peer) Share() kernel.Share { return kernel.Share{Size: 1} }

func (peer) Sum([]float64) error { return nil }

// The optimizer is reduce, the peer where there is one, then the update.
func TestOptimizeLeavesASeam(t *testing.T) {
	for _, joined := range []bool{false, true} {
		var l kernel.Layout
		p := plan.New("seam", reference.New[float64](2), 2, 1, &l)
		want := "reduce adamw"
		if joined {
			if err := p.Join(peer{}); err != nil {
				t.Fatal(err)
			}
			want = "reduce exchange adamw"
		}
		p.Optimize(&kernel.AdamW{}, 3)
		got := ""
		for i, op := range p.Program().Once {
			if i > 0 {
				got += " "
			}
			got += op.Kind()
		}
		if reduce := p.Program().Once[0].(*kernel.Reduce); got != want || reduce.Every != 3 || p.Program().Exchanges() != joined {
			t.Errorf("joined %v: %s, every %d; want %s, every 3", joined, got, reduce.Every, want)
		}
	}
}

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/plan"
)

// The backward pass ends at tensors of the host, and at results of ops that Append has recorded.
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

// peer is a kernel.Peer without ranks.
type peer struct{}

func (peer) Exchange([]float32) error { return nil }

func (peer) Share() kernel.Share { return kernel.Share{Size: 1} }

func (peer) Sum([]float64) error { return nil }

// TestSetGroupSize: a shard is the multiple of a group that is nearest to the device's size, at
// least one group. On a device with one shard per batch it stays the batch, and parts are of whole
// groups. Splits of a group are refused.
func TestSetGroupSize(t *testing.T) {
	var l kernel.Layout
	for _, c := range []struct{ shard, batch, rows, want int }{
		{2, 16, 1, 2}, {2, 16, 0, 2}, {2, 16, 8, 8}, {8, 16, 8, 8}, {11, 48, 8, 8}, {12, 48, 8, 16}, {30, 64, 8, 32}, {30, 24, 8, 24}, {3, 6, 2, 4},
		{kernel.WholeBatch, 24, 8, 24},
	} {
		p := plan.New("together", reference.New[float64](c.shard), c.batch, 1, &l)
		if p.SetGroupSize(c.rows); p.B() != c.want {
			t.Errorf("%d rows in turn, in shards of %d of a batch of %d: shards of %d, want %d", c.rows, c.shard, c.batch, p.B(), c.want)
		}
	}
	for _, c := range []struct {
		shard, batch, parts, ranks int
		want                       string // the error, or else the shard and the batch of a part
	}{
		{kernel.WholeBatch, 32, 4, 0, "8 8"},
		{kernel.WholeBatch, 32, 1, 2, "16 16"},
		{kernel.WholeBatch, 32, 2, 2, "16 16"},
		{kernel.WholeBatch, 24, 2, 0, "a batch of 24 in groups of 8 does not cut into 2 equal parts: use a multiple of 16, or fewer parts"},
		{kernel.WholeBatch, 24, 1, 2, "a batch of 24 in groups of 8 does not cut into 2 equal parts: use a multiple of 16, or fewer ranks"},
		{kernel.WholeBatch, 32, 8, 2, "a batch of 32 in groups of 8 does not cut into 8 equal parts: use a multiple of 64, or fewer parts"},
		{kernel.WholeBatch, 48, 1, 4, "a batch of 48 in groups of 8 does not cut into 4 equal parts: use a multiple of 32, or fewer ranks"},
		{3, 32, 4, 2, "8 16"},
		{3, 24, 1, 2, "a batch of 24 in shards of 8 does not cut into 2 equal parts: use a multiple of 16, or fewer ranks"},
		{13, 16, 1, 2, "a batch of 16 in shards of 16 does not cut into 2 equal parts: use a multiple of 32, or fewer ranks"},
	} {
		p := plan.New("together", reference.New[float64](c.shard), c.batch, 1, &l)
		p.SetGroupSize(8)
		var joined kernel.Peer
		if c.ranks > 0 {
			joined = one{ranks: c.ranks}
		}
		err := p.SplitStep(c.parts, joined)
		got := fmt.Sprint(p.B(), p.Batch())
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d parts of a batch of %d in shards of %d, %d ranks: %s, want %s", c.parts, c.batch, c.shard, c.ranks, got, c.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a batch of 12 has whole groups of 8")
		}
	}()
	plan.New("together", reference.New[float64](4), 12, 1, &l).SetGroupSize(8)
}

// one is rank 0 of several ranks.
type one struct {
	peer
	ranks int
}

func (p one) Share() kernel.Share { return kernel.Share{Size: p.ranks} }

// Optimize records the reduction, the exchange if there is a peer, and the update.
func TestOptimizeLeavesASeam(t *testing.T) {
	for _, joined := range []bool{false, true} {
		var l kernel.Layout
		p := plan.New("seam", reference.New[float64](2), 2, 1, &l)
		want := "reduce adamw"
		if joined {
			if err := p.Distribute(peer{}); err != nil {
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

// TestAResidualEndsWhatReadsIt: an op that reads a residual connection's input after it is refused,
// because the input then uses the output's gradient buffer.
func TestAResidualEndsWhatReadsIt(t *testing.T) {
	var l kernel.Layout
	w := l.Add("w", kernel.InitUniform, 4, 4, 4)
	p := plan.New("residual", reference.New[float64](2), 2, 2, &l)
	x := p.Dropout("x", p.Rows("raw", p.B(), 2, 4), nil, 0.5, 1, 1)
	y := p.Linear("y", x, p.Weight(0, w), nil, x)
	z := p.Linear("z", x, p.Weight(0, w), nil, nil)
	for _, out := range []*kernel.Tensor{y, z} {
		seed := p.Shard("seed", out.Shape...)
		p.Append(&kernel.Dropout{Y: seed, X: out, Drop: kernel.Drop{Nodes: 2}})
		p.SeedGrad(out, seed)
	}
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "residual input x has a gradient before") {
			t.Error(said)
		}
	}()
	p.Backward()
}

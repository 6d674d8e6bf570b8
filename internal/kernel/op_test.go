package kernel

import "testing"

func TestHalvedBytes(t *testing.T) {
	wide := &Tensor{Shape: []int{4, 8}, Stride: 8}
	held := &Tensor{Shape: []int{4, 8}, Stride: 8, Compact: true}
	view := &Tensor{Shape: []int{4, 2}, Stride: 8, Parent: held}
	for _, c := range []struct {
		op   Op
		want int64
	}{
		{&GLU{Y: wide, G: wide}, 0},
		{&Dropout{Y: held, X: wide}, 2 * 32},
		{&LinearGradX{DX: held, DY: view, W: wide, Accumulate: true}, 2*2*32 + 2*8},
	} {
		if got := HalvedBytes(c.op); got != c.want {
			t.Errorf("%s: %d bytes less, want %d", c.op.Kind(), got, c.want)
		}
	}
}

// A rollout reads the first 3D columns of the projections, not the pointer's source behind them,
// and the pairs' columns once.
func TestRolloutCountsTheBytesItReads(t *testing.T) {
	const b, n, s, steps, d = 5, 11, 3, 20, 8
	tensor := func(shape ...int) *Tensor { return &Tensor{Shape: shape, Stride: shape[len(shape)-1]} }
	proj, dproj := tensor(b, n, 6*d), tensor(b, n, 6*d)
	pair := &Tensor{Shape: []int{b, n, 2 * d}, Stride: 6 * d, Parent: proj, Offset: 4 * d}
	dpair := &Tensor{Shape: []int{b, n, 2 * d}, Stride: 6 * d, Parent: dproj, Offset: 4 * d}
	plain := Decoder{Proj: proj, Pointer: tensor(b, n, d), Graph: tensor(b, d), Context: tensor(d),
		Instances: Instances{PosX: tensor(b, n), PosY: tensor(b, n), Nodes: tensor(b, n)}}
	pairs := plain
	pairs.Pair, pairs.PairContext = pair, tensor(d)
	wide := pairs
	wide.Pair = tensor(b, n, 3*d) // of which the first 2D are read
	const (
		read    = 4 * (b*n*3*d + b*n*d + b*d + d + 3*b*n)
		more    = 4 * (b*n*2*d + d)
		results = 4 * (b*s*steps + 4*b*s)
		grads   = 4 * (b*s*steps + 2*b*s + b*n*3*d + b*n*d + b*d + 2*d)
	)
	for _, c := range []struct {
		decoder    Decoder
		pairs      bool
		plus, grad int64
	}{{plain, false, 0, 0}, {pairs, true, more, more + 4*(b*n*2*d+2*d)}, {wide, true, more, more + 4*(b*n*2*d+2*d)}} {
		o := &Rollout{Decoder: c.decoder, Actions: tensor(b, s, steps), Steps: tensor(b, s), Length: tensor(b, s), LogProb: tensor(b, s), Entropy: tensor(b, s)}
		if got, want := o.Cost().Bytes, read+results+c.plus; got != want {
			t.Errorf("a rollout with pairs %v: %d bytes, want %d", c.pairs, got, want)
		}
		g := &RolloutGrad{Decoder: c.decoder, DProj: dproj, DPointer: tensor(b, n, d), DGraph: tensor(b, d), DContext: tensor(d),
			Actions: o.Actions, Steps: o.Steps, Adv: tensor(b, s)}
		if c.pairs {
			g.DPair, g.DPairContext = dpair, tensor(d)
		}
		if got, want := g.Cost().Bytes, read+grads+c.grad; got != want {
			t.Errorf("its gradient with pairs %v: %d bytes, want %d", c.pairs, got, want)
		}
	}
}

package kerneltest

import (
	"fmt"
	"testing"

	"haul/internal/kernel"
)

// roundedShapes are the models' own, and nodes about the tiles of eight and sixteen that devices
// which round go by; with -short one for each of the sizes that kernels are made for, which a
// sanitizer is done with soon.
func roundedShapes() []shape {
	if testing.Short() {
		return []shape{{11, 4, 32}, {21, 8, 16}, {51, 4, 32}, {97, 2, 16}, {113, 1, 32}}
	}
	out := []shape{{11, 4, 32}, {21, 4, 32}, {51, 8, 16}, {51, 4, 32}, {101, 8, 16}, {101, 4, 32}}
	for i, n := range []int{2, 15, 16, 17, 24, 25, 32, 33, 40, 48, 49, 56, 57, 64, 96, 97, 104, 105, 112, 127, 128, 129} {
		out = append(out, shape{n, 1 + i%4, 16 + 16*(i%2)})
	}
	return append(out, shape{30, 8, 8}, shape{30, 2, 64}, shape{19, 3, 5})
}

// testRoundedAttention is attention with its gradient behind it, since what the one keeps for the
// other is the device's own affair.
func testRoundedAttention(t *testing.T, dev kernel.Device) { attentionOf(t, dev, roundedShapes()) }

func attentionOf(t *testing.T, dev kernel.Device, shapes []shape) {
	for i, s := range shapes {
		if !tries(dev, i) {
			continue
		}
		n, d := s.nodes, s.heads*s.width
		c := trial{what: fmt.Sprintf("attention N=%d H=%d W=%d", n, s.heads, s.width), nodes: n, batch: few(dev, n), amplify: 4,
			rounds: true}
		c.record = func(r *recording) {
			y, p, qkv, x, y0, slope := r.out("y", n+s.width, n, d), r.in("p", s.heads, n, kernel.Pad(n)), r.in("qkv", n, 3*d), r.in("x",
				n), r.in("y0", n), r.weight("slope", s.heads)
			r.do(&kernel.Attention{Y: y, P: p, QKV: qkv, PosX: x, PosY: y0, Slope: slope, Heads: s.heads})
			r.do(&kernel.AttentionGrad{DQKV: r.out("dqkv", n+s.width, n, 3*d), DSlope: r.grad(slope, r.prog.Batch*n*n), DY: r.in("dy", n,
				d), P: p, QKV: qkv, PosX: x, PosY: y0,
				Y: y, Slope: slope, Heads: s.heads})
		}
		c.try(t, dev)
	}
}

// roundedFleets are of roundedShapes; some of them score pairs too, the models' own among these.
func roundedFleets() []fleet {
	var out []fleet
	for i, s := range roundedShapes() {
		f := fleet{shape: s, starts: 1 + i%2, capacity: heaviest + int32(i%3)*12, temperature: []float32{1, 2.5, 0.6}[i%3]}
		if i%4 == 3 {
			f.forced, f.starts = true, min(s.nodes-1, 3)
			out = append(out, f.view())
		}
		out = append(out, f)
		if i%6 == 5 || i == 1 || i == 3 {
			f.pairs = true
			out = append(out, f)
		}
	}
	return out
}

// testRoundedRollout lets the device choose, checks every choice as far as its rounding allows, and
// compares the numbers on its own routes.
func testRoundedRollout(t *testing.T, dev kernel.Device) {
	for i, f := range roundedFleets() {
		if !tries(dev, i) {
			continue
		}
		// An error of a score is one of a logit, Clip/temperature times as large, and of a probability.
		f.edge = edge + unitOf(dev)*f.amplify()
		for _, choice := range []kernel.Choice{kernel.Sample, kernel.Greedy} {
			c := f.rollout(dev, choice, nil)
			c.rounds = true
			r, got := c.run(t, dev, false)
			if !f.valid(t, r, got) {
				continue
			}
			actions := got.ints["actions"]
			f.checkChoices(t, r, choice, actions, c.state.Instances)
			replay := f.rollout(dev, kernel.Replay, actions)
			_, want := replay.run(t, reference64(), false)
			want.ints["actions"] = actions
			c.compare(t, r, got, want, outcome{}, unitOf(dev))
			r, again := replay.run(t, dev, false)
			replay.compare(t, r, again, got, outcome{}, 0)
		}
	}
}

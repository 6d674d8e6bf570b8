package kerneltest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
)

// tallied is a tally of every kind of term, with the sums that it must give: over rows of one
// column and of several.
func tallied(r *recording, columns int) (*kernel.Tally, map[string]float64) {
	n := r.prog.Batch * columns
	x, y, one := r.normals("x", n), r.normals("y", n), r.normals("one", r.prog.Batch)
	counts := make([]int32, n)
	var want struct{ x, log, product, whole, broad, wide float64 }
	wide := r.normals("wide", 3*r.prog.Batch)
	for i := range x {
		x[i] = float32(math.Abs(float64(x[i]))) + 0.5
		counts[i] = int32(7*i%11) - 3
		want.x += float64(x[i])
		want.log += math.Log(float64(x[i]))
		want.product += float64(x[i]) * float64(y[i])
		want.whole += float64(counts[i])
		want.broad += float64(one[i/columns])
		want.wide += float64(wide[3*(i/columns)+1])
	}
	tx, ty := r.given("x", x, columns), r.given("y", y, columns)
	whole, broad := r.givenInts("counts", counts, columns), r.given("one", one, 1)
	middle := columnsOf(r.given("wide", wide, 3), 1, 2)
	const a, b = 0.25, -3.5
	o := &kernel.Tally{Sums: []kernel.Sum{
		kernel.NewSum("x", tx, nil), kernel.NewSum("product", tx, ty), kernel.NewSum("whole", whole, nil), kernel.NewSum("broad", broad, nil), kernel.NewSum("middle", middle, nil),
		{Name: "rows", Terms: []kernel.Term{{Weight: 1}}},
		{Name: "log", Terms: []kernel.Term{{X: tx, Log: true, Weight: 1}}},
		{Name: "mixed", Terms: []kernel.Term{{X: tx, Y: ty, Weight: 2}, {X: whole, Weight: -1, Coefficient: "b", Mean: true}, {Weight: 0.5, Coefficient: "a"}}},
	}}
	return o, map[string]float64{"x": want.x, "product": want.product, "whole": want.whole, "broad": want.broad, "middle": want.wide, "rows": float64(n), "log": want.log,
		"mixed": 2*want.product - b*want.whole/float64(n) + 0.5*a*float64(n)}
}

// testTally adds up two steps, reads them, and adds up a third.
func testTally(t *testing.T, dev kernel.Device) {
	for _, columns := range []int{1, 7} {
		what := fmt.Sprintf("tally of %d columns", columns)
		c := trial{what: what, nodes: 4, batch: batchFor(dev, 4)}
		var want map[string]float64
		c.record = func(r *recording) {
			var o *kernel.Tally
			o, want = tallied(r, columns)
			r.prog.Once = append(r.prog.Once, o)
		}
		run := c.on(dev, false).start(t, dev)
		check(t, run.SetControl(kernel.Control{Temperature: 1, Coefficients: map[string]float32{"a": 0.25, "b": -3.5}}))
		for _, steps := range []int{2, 1, 0} {
			for range steps {
				check(t, run.Run())
			}
			m, err := run.TakeMetrics()
			check(t, err)
			if m.Steps != int64(steps) || len(m.Sums.Names()) != len(want) || m.GradNorm != 0 || m.BadStep != 0 {
				t.Errorf("%s: %+v after %d steps", what, m, steps)
			}
			for name, v := range want {
				// Sums of exact float64 products, and of logarithms: a few units of double precision per row.
				if got, v := m.Sum(name), float64(steps)*v; math.Abs(got-v) > 1e-12*float64(c.batch*columns) {
					t.Errorf("%s: %s is %v after %d steps, want %v", what, name, got, steps, v)
				}
			}
		}
		if err := run.SetControl(kernel.Control{Coefficients: map[string]float32{"c": 1}}); err == nil || !strings.Contains(err.Error(), `no coefficient "c"`) {
			t.Errorf("a coefficient that no op reads: %v", err)
		}
		if err := run.SetState(kernel.State{Scalars: map[string]float64{"c": 1}}); err == nil || !strings.Contains(err.Error(), `no scalar "c"`) {
			t.Errorf("a scalar that no op has: %v", err)
		}
		check(t, run.Close())
	}
}

// second stands in for another process: it keeps what it is given and answers with the sum of that
// and its own gradient.
type second struct {
	own, got []float32
	calls    int
	err      error
}

func (s *second) Share() kernel.Share { return kernel.Share{} }
func (s *second) Sum([]float64) error { return nil }

// AllGather and AllGatherSums find nothing missing: the one piece is the whole.
func (s *second) AllGather([]float32, int) error { return nil }
func (s *second) AllGatherSums([]float64) error  { return nil }

func (s *second) Scatter(grad []float32, _ int) ([][]float32, error) {
	err := s.Exchange(grad)
	return [][]float32{grad}, err
}

func (s *second) Exchange(grad []float32) error {
	s.calls++
	s.got = slices.Clone(grad)
	for i := range grad {
		grad[i] += s.own[i]
	}
	return s.err
}

// testExchange lets two halves of a batch meet at the seam and expects what the whole batch gives:
// gradient, norm, weights. A peer that fails leaves the weights alone.
func testExchange(t *testing.T, dev kernel.Device) {
	const nodes, k, n = 2, 65, 70
	for _, every := range []int{1, 2} {
		ys := func(half int) string { return fmt.Sprint("dy", half) }
		learn := func(dev kernel.Device, peer kernel.Peer, halves ...int) (run kernel.Runner, store kernel.Store, length int, err error) {
			r := (&trial{what: "exchange", nodes: nodes, batch: 3 * len(halves), record: func(r *recording) {
				var dy, x []float32
				for _, h := range halves {
					dy = append(dy, r.coarse(ys(h), 3*nodes*n)...)
					x = append(x, r.coarse(fmt.Sprint("x", h), 3*nodes*k)...)
				}
				r.do(&kernel.LinearGradW{DW: r.grad(r.weight("w", n, k), 0), DBias: r.grad(r.weight("bias", n), 0), DY: r.given("dy", dy, nodes, n), X: r.given("x", x, nodes, k)})
			}}).on(dev, false)
			r.prog.Once = optimizer(r.prog, kernel.AdamW{Beta1: beta1, Beta2: beta2, Eps: stepEps, MaxNorm: 1}, every)
			if peer != nil {
				r.prog.Once = slices.Insert(r.prog.Once, 1, kernel.Op(&kernel.Exchange{Layout: r.prog.Layout, Peer: peer}))
			}
			store, err = dev.NewStore(r.prog.Layout, true)
			check(t, err)
			check(t, store.WriteWeights(r.weights))
			if run, err = dev.Compile(r.prog, []kernel.Store{store}); err != nil {
				return nil, nil, 0, err
			}
			check(t, run.SetControl(kernel.Control{Temperature: 1, LearningRate: rate}))
			for _, in := range r.inputs {
				check(t, run.WriteBatch(in.t, in.values))
			}
			return run, store, r.prog.Layout.Len, nil
		}
		gradient := func(run kernel.Runner, length int) []float32 {
			for range every {
				check(t, run.Run())
			}
			g := make([]float32, length)
			check(t, run.ReadGrad(g))
			return g
		}
		other, _, length, err := learn(dev, nil, 1)
		check(t, err)
		peer := &second{own: gradient(other, length)}
		half, halfStore, _, err := learn(dev, peer, 0)
		if err != nil && strings.Contains(err.Error(), "no place in a graph") {
			t.Skip(err)
		}
		check(t, err)
		alone, _, _, err := learn(dev, nil, 0)
		check(t, err)
		whole, wholeStore, _, err := learn(dev, nil, 0, 1)
		check(t, err)
		got, want := gradient(half, length), gradient(whole, length)
		if peer.calls != 1 || !slices.Equal(peer.got, gradient(alone, length)) {
			t.Errorf("every %d: the peer was called %d times; it must see the reduced gradient of an update, once", every, peer.calls)
		}
		// sums of a few coarse numbers are exact
		if slices.Equal(peer.own, peer.got) || !slices.Equal(got, want) {
			t.Errorf("every %d: two halves that met have another gradient than the whole", every)
		}
		gm, err := half.TakeMetrics()
		check(t, err)
		wm, err := whole.TakeMetrics()
		check(t, err)
		gw, ww := make([]float32, length), make([]float32, length)
		check(t, halfStore.ReadWeights(gw))
		check(t, wholeStore.ReadWeights(ww))
		if gm.GradNorm != wm.GradNorm || gm.GradNorm < 1 || !slices.Equal(gw, ww) {
			t.Errorf("every %d: norm %v and weights of two halves that met, want %v and those of the whole", every, gm.GradNorm, wm.GradNorm)
		}
		peer.err = errors.New("the other side has gone")
		for range every - 1 {
			check(t, half.Run())
		}
		if err := half.Run(); !errors.Is(err, peer.err) {
			t.Errorf("every %d: a peer that failed: %v", every, err)
		}
		check(t, halfStore.ReadWeights(gw))
		if !slices.Equal(gw, ww) {
			t.Errorf("every %d: weights moved although the gradient did not come", every)
		}
		for _, run := range []kernel.Runner{other, half, alone, whole} {
			check(t, run.Close())
		}
	}
}

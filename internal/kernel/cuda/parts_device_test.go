package cuda_test

import (
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// half is one of two processes that share a step, played one after the other: the first leaves its
// gradient with the second, which adds it as the tree does. With nobody before it it is a peer that
// changes nothing.
type half struct {
	rank, size int
	before     []float32 // the other's gradient
	own        []float32
}

func (h *half) Share() kernel.Share { return kernel.Share{Rank: h.rank, Size: h.size} }
func (h *half) Sum([]float64) error { return nil }
func (h *half) Exchange(g []float32) error {
	h.own = slices.Clone(g)
	for i := range h.before {
		g[i] = h.before[i] + g[i]
	}
	return nil
}

// TestStagedPartsAreTheWholeStep: a step of four parts gives the same gradient and weights, bit for
// bit, alone; with a peer on the host, through page-locked memory; and as two processes' two parts
// each.
func TestStagedPartsAreTheWholeStep(t *testing.T) {
	for _, p := range []cuda.Precision{cuda.FP32, cuda.TF32} {
		t.Run(string(p), func(t *testing.T) {
			dev := open(t, p)
			defer dev.Close()
			step := func(peer kernel.Peer) (grad, weights []float32) {
				t.Helper()
				const n, batch = 12, 64
				m, err := model.NewGT(model.GTConfig{Width: 32, Heads: 4, Layers: 2, FeedMul: 2})
				if err != nil {
					t.Fatal(err)
				}
				pl := plan.New("parts", dev, batch, n+1, m.Layout())
				if err := pl.SplitStep(4, peer); err != nil {
					t.Fatal(err)
				}
				in := pl.Drawn(kernel.Rules{Capacity: 30}, n+1, kernel.Drawing{Seed: 1, Purpose: rng.TrainInstances, DemandMin: 1, DemandMax: 9, Symmetries: 1})
				routes := pl.Rollout("policy", m.Encode(pl, 0, in, true), plan.RolloutSpec{Starts: 4, MaxStep: 2 * n, Seed: 1}, rng.Actions)
				adv, base := pl.Advantage(routes, kernel.SharedMean, nil, 0, plan.Comparison{})
				pl.PolicyGradient(routes, adv)
				pl.Backward()
				pl.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, MaxNorm: 1}, 1)
				pl.TallyRoutes(routes, adv, base)
				store, err := dev.NewStore(m.Layout(), true)
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				if err := store.WriteWeights(model.Initial(m.Layout(), 1)); err != nil {
					t.Fatal(err)
				}
				r, err := pl.Compile(dev, store)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				if err := r.SetControl(kernel.Control{LearningRate: 1e-2, Temperature: 1}); err != nil {
					t.Fatal(err)
				}
				if err := r.Run(); err != nil {
					t.Fatal(err)
				}
				grad, weights = make([]float32, m.Layout().Len), make([]float32, m.Layout().Len)
				if err := r.ReadGrad(grad); err != nil {
					t.Fatal(err)
				}
				if err := store.ReadWeights(weights); err != nil {
					t.Fatal(err)
				}
				if s, err := r.State(); err != nil || s.Instances != batch || s.Step != 1 || s.Part != 0 {
					t.Errorf("it stands at %+v, %v", s, err)
				}
				if m, err := r.TakeMetrics(); err != nil || m.Steps != 1 {
					t.Errorf("%v steps, %v", m.Steps, err)
				}
				return grad, weights
			}
			same := func(what string, peer kernel.Peer, grad, weights []float32) {
				t.Helper()
				if g, w := step(peer); !slices.Equal(g, grad) || !slices.Equal(w, weights) {
					t.Errorf("%s: another gradient or other weights", what)
				}
			}
			grad, weights := step(nil)
			if slices.Equal(weights, make([]float32, len(weights))) || slices.Max(grad) == 0 {
				t.Fatal("nothing was learned")
			}
			same("once more", nil, grad, weights)
			same("staged", &half{size: 1}, grad, weights)
			first := &half{rank: 0, size: 2}
			step(first)
			same("two processes", &half{rank: 1, size: 2, before: first.own}, grad, weights)
		})
	}
}

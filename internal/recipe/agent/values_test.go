package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// Each setting of implicit Q-learning reaches the recorded ops; without it nothing of it is
// recorded.
func TestValuesAreRecordedFromTheSettings(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	record := func(sets ...string) (*kernel.Program, *model.AD) {
		c := tinyAD(t, sets...)
		d, err := newDataset(h, c)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newModel(c, d.space)
		if err != nil {
			t.Fatal(err)
		}
		step, err := recordStep(openReference(), m, c, d, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		return step.plan.Program(), m
	}
	prog, m := record("method=iql", "iql_discount=0.75", "iql_expectile=0.625", "iql_beta=5", "iql_weight=0.5", "last_observation=true")
	got := runtest.Op[*kernel.ImplicitQ](t, prog.PerShard)
	// a token has the coordinates, the previous coordinates, the action, the reward, the type, the
	// position
	want := &kernel.ImplicitQ{Gain: 5, Type: 6, Gains: []float32{0, 1}, Discount: 0.75, Expectile: 0.625, Slope: 5, Most: 100, Weight: 0.5 / (5 * 20)}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(new(kernel.Tensor))); diff != "" {
		t.Error(diff)
	}
	loss := runtest.Op[*kernel.CrossEntropy](t, prog.PerShard)
	if loss.Weigh != got.Weigh || loss.Weigh == nil {
		t.Error("the policy's loss is not weighed by the values")
	}
	if n := got.Values.Cols(); n != 11 || got.Actions() != 5 {
		t.Errorf("%d values per token: want two of each of five actions and one of the state", n)
	}
	with := m.FLOPs(20)
	prog, m = record("last_observation=true")
	for _, op := range prog.PerShard {
		if _, ok := op.(*kernel.ImplicitQ); ok {
			t.Error("an imitator has values")
		}
	}
	if runtest.Op[*kernel.CrossEntropy](t, prog.PerShard).Weigh != nil {
		t.Error("an imitator weighs its labels")
	}
	if more := with - m.FLOPs(20); more != 20*2*8*11 {
		t.Errorf("values cost %d operations", more)
	}
}

// TestRewardsAreLearnedFrom: histories have random actions, and one action is rewarded. An imitator
// learns equal probabilities, and an agent that learns from rewards learns to take the rewarded
// one.
func TestRewardsAreLearnedFrom(t *testing.T) {
	const paid = 3
	for method, holds := range map[string]func(acc float64) bool{
		config.MethodImitate: func(acc float64) bool { return acc < 0.5 },
		config.MethodIQL:     func(acc float64) bool { return acc > 0.9 },
	} {
		c := tinyAD(t, "method="+method, "train_timesteps=200", "train_batch_size=16", "num_warmup_steps=10", "tf_dropout=0", "tf_attn_dropout=0", "lr=0.02", "train_n_stream=500", "iql_discount=0.5")
		d, err := randomDataset(c)
		if err != nil {
			t.Fatal(err)
		}
		histories := func(action func(i int) uint32) []int32 {
			words := make([]int32, len(d.train))
			for i := range words {
				a := action(i)
				words[i] = int32(a) << 16 // in one cell
				if a == paid {
					words[i] |= 1 << 24
				}
			}
			return words
		}
		d.train = histories(func(i int) uint32 { return rng.Below(rng.At(7, uint64(i), 0, rng.Learner)[0], 5) })
		d.test = histories(func(int) uint32 { return paid })
		dev := openCPU(t, 2)
		m, err := newModel(c, d.space)
		if err != nil {
			t.Fatal(err)
		}
		store, err := run.NewStore(dev, m.Layout(), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.WriteWeights(model.Initial(m.Layout(), c.Seed)); err != nil {
			t.Fatal(err)
		}
		_, step, err := compileStep(dev, m, c, d, store, DataDevice, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := step.SetControl(control(c)); err != nil {
			t.Fatal(err)
		}
		for range c.TrainTimesteps {
			if err := step.Run(); err != nil {
				t.Fatal(err)
			}
		}
		sums, err := step.TakeMetrics()
		if err != nil {
			t.Fatal(err)
		}
		if values := sums.Sum(plan.SumPaid) > 0; values != (method == config.MethodIQL) {
			t.Errorf("%s: sums of values: %v", method, values)
		}
		judged, _ := recordTest(dev, m, c, d.testSpec.Tokens, nil)
		test, err := judged.plan.Compile(dev, store)
		if err != nil {
			t.Fatal(err)
		}
		rows := d.testRows(c.TestBatchSize)
		for i, tensor := range judged.fed() {
			if err := test.WriteBatch(tensor, rows.Ints[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := test.Run(); err != nil {
			t.Fatal(err)
		}
		if sums, err = test.TakeMetrics(); err != nil {
			t.Fatal(err)
		}
		if _, acc := headMeans(plan.HeadOf(sums, model.HeadAction)); !holds(acc) {
			t.Errorf("%s takes the action that pays in %.0f %% of the tokens", method, 100*acc)
		}
		if err := errors.Join(test.Close(), step.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestShares: rewards are divided by the largest absolute value. A world without rewards has shares
// of 0.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		rewards []float64
		want    []float32
	}{{[]float64{0, 1}, []float32{0, 1}}, {[]float64{-4, 0, 2}, []float32{-1, 0, 0.5}}, {[]float64{0}, []float32{0}}} {
		if diff := cmp.Diff(c.want, shares(c.rewards)); diff != "" {
			t.Errorf("%v: %s", c.rewards, diff)
		}
	}
}

// plainGPU is a device without values.
type plainGPU struct{ kernel.Device }

func (d plainGPU) Compile(p *kernel.Program, stores []kernel.Store) (kernel.Runner, error) {
	for _, op := range p.PerShard {
		switch op.(type) {
		case *kernel.ImplicitQ:
			return nil, fmt.Errorf("compile %s: the GPU has no op %s", p.Name, op.Kind())
		}
	}
	return d.Device.Compile(p, stores)
}

// An error for a device without values gives advice.
func TestMissingOpsAreRefusedByName(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	_, err := newTrainer(&run.Setup{Settings: tinyAD(t, "method=iql"), Device: plainGPU{openReference()}}, &Task{History: h, Data: DataDevice})
	if err == nil || !strings.Contains(err.Error(), "method iql runs on a CPU alone: use --device cpu") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a GPU is told %v", err)
	}
}

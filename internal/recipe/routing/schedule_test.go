package routing

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/config"
)

var close12 = cmpopts.EquateApprox(1e-12, 1e-15)

func TestSchedules(t *testing.T) {
	const lr, low = 1e-3, 1e-5
	for _, c := range []struct {
		name      string
		sets      []string
		lr        []float64
		temp, ent []float64
	}{
		{"cosine", nil,
			[]float64{lr, low + (lr-low)*(1+math.Cos(math.Pi/4))/2, (lr + low) / 2, low + (lr-low)*(1+math.Cos(3*math.Pi/4))/2},
			[]float64{2, 1.625, 0.875, 0.5}, []float64{0.04, 0.0325, 0.0175, 0.01}},
		{"constant", []string{"training_advanced.scheduler_type=constant"},
			[]float64{lr, lr, lr, lr}, []float64{2, 1.625, 0.875, 0.5}, []float64{0.04, 0.0325, 0.0175, 0.01}},
		{"linear", []string{"training_advanced.scheduler_type=linear", "training_advanced.decay_share=0.5"},
			[]float64{lr, lr, lr, (lr + low) / 2}, []float64{2, 1.625, 0.875, 0.5}, []float64{0.04, 0.0325, 0.0175, 0.01}},
		{"linear from the beginning", []string{"training_advanced.scheduler_type=linear", "training_advanced.decay_share=1"},
			[]float64{lr, low + (lr-low)*0.75, (lr + low) / 2, low + (lr-low)*0.25}, []float64{2, 1.625, 0.875, 0.5}, []float64{0.04, 0.0325, 0.0175, 0.01}},
		{"no schedule", []string{"training_advanced.use_lr_scheduling=false", "training_advanced.entropy_coef=0.01"},
			[]float64{lr, lr, lr, lr}, []float64{2, 1.625, 0.875, 0.5}, []float64{0.01, 0.01, 0.01, 0.01}},
		{"one epoch", []string{"training.num_epochs=1"}, []float64{lr}, []float64{2}, []float64{0.04}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := tiny(t, append([]string{"training.num_epochs=4", "training.learning_rate=0.001", "training_advanced.min_lr=0.00001", "training_advanced.temp_start=2",
				"training_advanced.temp_min=0.5", "training_advanced.entropy_coef=0.04", "training_advanced.entropy_min=0.01"}, c.sets...)...)
			var lrs, temps, ents []float64
			for e := range cfg.Training.NumEpochs {
				p := state{}
				lrs, temps, ents = append(lrs, learningRate(cfg, e)), append(temps, p.temperature(cfg, e)), append(ents, entropyCoef(cfg, e))
			}
			if diff := cmp.Diff([][]float64{c.lr, c.temp, c.ent}, [][]float64{lrs, temps, ents}, close12); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAdaptiveTemperature(t *testing.T) {
	a := &config.Advanced{UseAdaptiveTemperature: true, TempStart: 2, TempMin: 1, TempAdaptationRate: 0.25}
	for _, c := range []struct {
		name  string
		costs []float64
		want  []float64
	}{
		{"four are too few", []float64{9, 8, 7, 6}, []float64{2, 2, 2, 2}},
		{"gains cool, to the floor", []float64{9, 8, 7, 6, 5, 4, 3, 2}, []float64{2, 2, 2, 2, 1.5, 1.125, 1, 1}},
		{"losses heat, to the start", []float64{9, 8, 7, 6, 5, 20, 30}, []float64{2, 2, 2, 2, 1.5, 1.875, 2}},
		{"no change is no gain", []float64{9, 8, 7, 6, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, []float64{2, 2, 2, 2, 1.5, 1.125, 1, 1, 1.25, 1.5625, 1.953125, 2, 2, 2, 2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := state{Temperature: a.TempStart}
			var got []float64
			for _, cost := range c.costs {
				p.adapt(a, cost)
				got = append(got, p.Temperature)
			}
			if len(p.Window) > windowLen {
				t.Errorf("the window has grown to %d", len(p.Window))
			}
			if diff := cmp.Diff(c.want, got, close12); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		name  string
		costs []float64
		on    bool
		want  int // validations until it stops, 0 never
	}{
		{"steady gains", []float64{9, 8, 7, 6, 5}, true, 0},
		{"no gain", []float64{9, 9, 9, 9}, true, 3},
		{"a gain starts it afresh", []float64{9, 9, 8, 8, 8, 8}, true, 5},
		{"small gains add up", []float64{9, 8.95, 8.88, 8.84}, true, 0},
		{"a gain of the delta itself is none", []float64{9, 8.9375, 8.9375}, true, 3},
		{"off", []float64{9, 9, 9, 9, 9}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &config.Advanced{UseEarlyStopping: c.on, EarlyStoppingPatience: 2, EarlyStoppingDelta: 0.0625}
			p, got := state{}, 0
			for i, cost := range c.costs {
				if p.patience(a, cost) && got == 0 {
					got = i + 1
				}
			}
			if got != c.want {
				t.Errorf("stopped after %d, want %d", got, c.want)
			}
		})
	}
}

func TestBaselineRule(t *testing.T) {
	base := []float64{2, 3, 4, 5}
	clear, weak, worse := []float64{1.9, 2.8, 3.9, 4.8}, []float64{1, 3.9, 4, 5}, []float64{3, 4, 5, 6.5}
	for _, c := range []struct {
		name  string
		u     config.BaselineUpdate
		costs []float64
		want  bool
	}{
		{"clearly better", config.BaselineUpdate{SignificanceTest: true, PValue: 0.05}, clear, true},
		{"better by chance", config.BaselineUpdate{SignificanceTest: true, PValue: 0.05}, weak, false},
		{"better by chance, mean only", config.BaselineUpdate{PValue: 0.05}, weak, true},
		{"a generous test", config.BaselineUpdate{SignificanceTest: true, PValue: 0.49}, weak, true},
		{"worse", config.BaselineUpdate{SignificanceTest: true, PValue: 0.999}, worse, false},
		{"worse, mean only", config.BaselineUpdate{}, worse, false},
		{"equal", config.BaselineUpdate{}, base, false},
	} {
		v := compare(&c.u, c.costs, base)
		if v.replace != c.want || (v.p != nil) != c.u.SignificanceTest {
			t.Errorf("%s: replace %v, p %v", c.name, v.replace, v.p)
		}
	}
	for _, c := range []struct {
		u    config.BaselineUpdate
		want []int
	}{
		{config.BaselineUpdate{Enabled: true, Frequency: 1}, []int{1, 2, 3, 4, 5, 6}},
		{config.BaselineUpdate{Enabled: true, Frequency: 2, WarmupEpochs: 3}, []int{4, 6}},
		{config.BaselineUpdate{Frequency: 1}, nil},
	} {
		var got []int
		for e := 1; e <= 6; e++ {
			if due(&c.u, e) {
				got = append(got, e)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v: %s", c.u, diff)
		}
	}
}

package routing

import (
	"strings"
	"testing"

	"haul/internal/config"
)

// A collapsed run warns and names the settings that may prevent it. A run that learns does not
// warn.
func TestCollapseIsSaid(t *testing.T) {
	c := &config.Config{}
	c.Training.LearningRate, c.Advanced.WarmupSteps = 3e-4, 500
	cost := func(v float64) *float64 { return &v }
	for _, x := range []struct {
		name      string
		val, best *float64
		norm      float64
		want      string
	}{
		{"first validation", cost(0.9), nil, 3, ""},
		{"better", cost(0.19), cost(0.2), 3, ""},
		{"at the limit", cost(0.3), cost(0.2), 3, ""},
		{"past it", cost(0.3001), cost(0.2), 3, "50 % above the best, 0.2000"},
		{"not validated", nil, cost(0.2), 3, ""},
		{"no gradient", nil, cost(0.2), 0, "every gradient was zero: nothing is learned any more; runs/x/best.safetensors keeps the best, 0.2000"},
		{"none from the start", nil, nil, 0, "nothing is learned any more. A lower"},
	} {
		got := collapse(c, &Epoch{Epoch: 7, ValCPC: x.val, GradNorm: x.norm}, x.best, "runs/x/best.safetensors")
		if x.want == "" && got != "" || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
		if got != "" && !strings.Contains(got, "(0.0003 now)") {
			t.Errorf("%s: %q does not name the rate", x.name, got)
		}
	}
}

// A run of one customer has one route and no gradient: it says so, once.
func TestARunSaysOnce(t *testing.T) {
	h, _ := whole(t, tiny(t, "problem.num_customers=1", "training_advanced.entropy_coef=0", "training_advanced.entropy_min=0"), openCPU(t, 1))
	if said := strings.Count(strings.Join(h.Notes, "\n"), "every gradient was zero"); len(epochsOf(h)) != 3 || said != 1 {
		t.Errorf("said %d times in %d epochs: %q", said, len(epochsOf(h)), h.Notes)
	}
	h, _ = whole(t, tiny(t), openCPU(t, 1))
	if said := strings.Join(h.Notes, "\n"); strings.Contains(said, "gradient was zero") || strings.Contains(said, "lost") {
		t.Errorf("a run that learns says %q", said)
	}
}

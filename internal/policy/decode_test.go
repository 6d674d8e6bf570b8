package policy

import (
	"strings"
	"testing"

	"haul/internal/config"
)

// TestDecodeFor: the default decoder makes as many routes as a second allows. With viewed starts it
// samples them, up to twice the customers of training: larger samples are bad.
func TestDecodeFor(t *testing.T) {
	for _, c := range []struct {
		views          bool
		trained, n     int
		want, thorough string
	}{
		{false, 20, 1, "pomo8", "pomo8"},
		{false, 20, MostForPomo8, "pomo8", "pomo8"},
		{false, 20, MostForPomo8 + 1, "pomo", "pomo8"},
		{false, 20, MostForPomo, "pomo", "pomo8"},
		{false, 20, MostForPomo + 1, "greedy", "pomo8"},
		{true, 20, 1, "pomo8:1", "pomo8:1"},
		{true, 20, 40, "pomo8:1", "pomo8:1"},
		{true, 20, 41, "pomo8", "pomo8"},
		{true, 20, MostForPomo, "pomo", "pomo8"},
		{true, 200, MostForPomo8, "pomo8:1", "pomo8:1"},
		{true, 200, MostForPomo, "pomo:1", "pomo8:1"},
		{true, 300, MostForPomo + 1, "greedy", "pomo8:1"},
	} {
		var settings config.Config
		settings.Model.StartViews, settings.Problem.Customers = c.views, config.Size(c.trained)
		if got := DecodeFor(&settings, c.n).String(); got != c.want {
			t.Errorf("%d customers, trained on %d, views %v: %s, want %s", c.n, c.trained, c.views, got, c.want)
		}
		if got := Thorough(&settings, c.n).String(); got != c.thorough {
			t.Errorf("%d customers, trained on %d, views %v: thoroughly %s, want %s", c.n, c.trained, c.views, got, c.thorough)
		}
	}
}

// TestDrawnFor: a greedy decoder of viewed starts is answered with the sampling one, near the size
// of training only.
func TestDrawnFor(t *testing.T) {
	for _, c := range []struct {
		decode string
		views  bool
		n      int
		want   string
	}{
		{"pomo8", true, 20, "pomo8:1"},
		{"pomo", true, 40, "pomo:1"},
		{"pomo8", true, 41, ""}, {"pomo8", false, 20, ""}, {"pomo8:1", true, 20, ""}, {"pomo8:0.5", true, 20, ""},
		{"sgbs8", true, 20, ""}, {"greedy", true, 20, ""}, {"sample8:20", true, 20, ""},
	} {
		var settings config.Config
		settings.Model.StartViews, settings.Problem.Customers = c.views, config.Size(20)
		d, err := ParseDecode(c.decode)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.DrawnFor(&settings, c.n); got != c.want {
			t.Errorf("%s of views %v at %d customers: %q, want %q", c.decode, c.views, c.n, got, c.want)
		}
	}
}

// TestValidationDecode: validation uses the default decoder of the policy.
func TestValidationDecode(t *testing.T) {
	for _, c := range []struct {
		views      bool
		says, want string
	}{
		{false, "greedy", "greedy"}, {false, "pomo", "pomo"}, {false, "pomo8", "pomo8"},
		{true, "greedy", "greedy"}, {true, "pomo", "pomo:1"}, {true, "pomo8", "pomo8:1"},
	} {
		var settings config.Config
		settings.Model.StartViews, settings.Training.ValidationDecode = c.views, c.says
		if got := ValidationDecode(&settings).String(); got != c.want {
			t.Errorf("%s, views %v: %s, want %s", c.says, c.views, got, c.want)
		}
	}
}

func TestParseDecode(t *testing.T) {
	for _, s := range []string{"greedy", "pomo", "pomo8", "pomo:1", "pomo8:1.25", "sample:16", "sample8:16", "sample:3,0.5", "sample8:3,2", "sgbs:4,4", "sgbs8:2,3", "eas", "eas8", "eas:1", "eas8:1000000", "pomo+join", "pomo8:1+join", "sample:2+join", "sample8:1+join", "eas8:9+join"} {
		if d, err := ParseDecode(s); err != nil || d.String() != s {
			t.Errorf("%s: %v, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "beam", "sample:", "sample:0", "sample:-1", "sample:1e9", "sample:99999999", "sgbs:", "sgbs:4", "sgbs:0,4", "sgbs:4,1", "sgbs:65,4", "sgbs:4,4,4", "sgbs16",
		"sample", "sample8", "sample8:", "sample:4,", "sample:4,0", "sample:4,-1", "sample:4,nan", "sample:4,1,1", "pomo:", "pomo8:", "pomo:0", "pomo:inf", "pomo:1e4", "pomo:hot", "pomo:1,2", "pomo88", "greedy8", "greedy:1",
		"eas:", "eas:0", "eas:-1", "eas:1000001", "eas:1.5", "eas:9,9", "eas88", "greedy+join", "sample:1+join", "sgbs+join", "pomo+join+join", "+join", "pomo+ join"} {
		if _, err := ParseDecode(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	if d, err := ParseDecode("pomo:1e+2"); err != nil || d.Temperature != 100 {
		t.Errorf("a temperature of 1e+2: %v, %v", d, err)
	}
	for _, s := range []string{"pomo8:1+jon", "pomo+", "pomo+joins", "sample:4,1+Join", "eas:9 +join ", "pomo+join+jon"} {
		if _, err := ParseDecode(s); err == nil || !strings.Contains(err.Error(), "goes +join alone") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// TestForever: with time left, routes are sampled from the same starts, or as many as there are
// customers, because greedy routes would repeat.
func TestForever(t *testing.T) {
	for name, want := range map[string]Decode{
		"greedy":      {Samples: 7, Symmetries: 1},
		"pomo":        {Starts: true, Drawn: true, Symmetries: 1},
		"pomo8":       {Starts: true, Drawn: true, Symmetries: 8},
		"pomo8:2":     {Starts: true, Drawn: true, Symmetries: 8, Temperature: 2},
		"sample8:3,2": {Samples: 3, Symmetries: 8, Temperature: 2},
		"sgbs8":       {Starts: true, Drawn: true, Symmetries: 8, Expand: beamWidth},
	} {
		d, err := ParseDecode(name)
		if got := d.furtherSamples(7); err != nil || got != want {
			t.Errorf("%s: %+v, want %+v, %v", name, got, want, err)
		}
	}
}

package routing

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/config"
)

// TestDecodeFor: where nobody says how, as many routes as a second allows, and drawn ones where the
// starts are viewed, up to twice the customers of training: what is drawn far from there is no
// good.
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
		settings.Model.StartViews, settings.Problem.NumCustomers = c.views, c.trained
		if got := DecodeFor(&settings, c.n).String(); got != c.want {
			t.Errorf("%d customers, trained on %d, views %v: %s, want %s", c.n, c.trained, c.views, got, c.want)
		}
		if got := Thorough(&settings, c.n).String(); got != c.thorough {
			t.Errorf("%d customers, trained on %d, views %v: thoroughly %s, want %s", c.n, c.trained, c.views, got, c.thorough)
		}
	}
}

// TestDrawnFor: whoever asks for the most likely routes of viewed starts is told of the drawn ones,
// near the size of training alone.
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
		settings.Model.StartViews, settings.Problem.NumCustomers = c.views, 20
		d, err := ParseDecode(c.decode)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.drawnFor(&settings, c.n); got != c.want {
			t.Errorf("%s of views %v at %d customers: %q, want %q", c.decode, c.views, c.n, got, c.want)
		}
	}
}

// TestValidationDecode: a run is judged as its policy will be used.
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
		if got := validationDecode(&settings).String(); got != c.want {
			t.Errorf("%s, views %v: %s, want %s", c.says, c.views, got, c.want)
		}
	}
}

// TestARunWithViewsSaysHowItWasJudged: the end of a run and its pictures name the decoder that was
// used.
func TestARunWithViewsSaysHowItWasJudged(t *testing.T) {
	var settings config.Config
	settings.Model.StartViews, settings.Training.ValidationDecode = true, "pomo"
	v := &view{cfg: &settings}
	if end := v.ending(&Summary{TestInstances: 7}); !strings.Contains(fmt.Sprint(end), "7 instances, pomo:1") {
		t.Errorf("%v", end)
	}
}

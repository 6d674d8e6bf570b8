package routing

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/config"
)

// TestDecodeFor: where nobody says how, as many routes as a second allows, and drawn ones where the starts are viewed.
func TestDecodeFor(t *testing.T) {
	for _, c := range []struct {
		views bool
		n     int
		want  string
	}{
		{false, 1, "pomo8"},
		{false, MostForPomo8, "pomo8"},
		{false, MostForPomo8 + 1, "pomo"},
		{false, MostForPomo, "pomo"},
		{false, MostForPomo + 1, "greedy"},
		{true, MostForPomo8, "pomo8:1"},
		{true, MostForPomo, "pomo:1"},
		{true, MostForPomo + 1, "greedy"},
	} {
		var settings config.Config
		settings.Model.StartViews = c.views
		if got := DecodeFor(&settings, c.n).String(); got != c.want {
			t.Errorf("%d customers, views %v: %s, want %s", c.n, c.views, got, c.want)
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

// TestARunWithViewsSaysHowItWasJudged: the end of a run and its pictures name the decoder that was used.
func TestARunWithViewsSaysHowItWasJudged(t *testing.T) {
	var settings config.Config
	settings.Model.StartViews, settings.Training.ValidationDecode = true, "pomo"
	v := &view{cfg: &settings}
	if end := v.ending(&Summary{TestInstances: 7}); !strings.Contains(fmt.Sprint(end), "7 instances, pomo:1") {
		t.Errorf("%v", end)
	}
}

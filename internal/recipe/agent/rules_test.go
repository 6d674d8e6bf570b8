package agent

import (
	"testing"

	"haul/internal/config"
)

// A full context without compression drops one episode, of any length. With compression it holds
// two regions and their marks.
func TestContextRulesFollowTheSettings(t *testing.T) {
	for _, c := range []struct {
		transit, horizon, keep int
	}{{100, 20, 80}, {100, 100, 0}, {100, 101, 0}, {100, 1, 99}} {
		cfg, err := config.LoadAD("", []string{"use_compressed_context=false", "n_transit=100"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := newContextRules(cfg, 1, c.horizon)
		if err != nil || r.keep != c.keep || r.capacity != c.transit || r.compressed {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
	cfg, err := config.LoadAD("", []string{"use_compressed_context=true", "compress_interval=16", "compress_min=8", "n_transit=100"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := newContextRules(cfg, 1, 20); err != nil || r.capacity != 35 || r.longest != 16 || !r.compressed {
		t.Errorf("%+v, %v", r, err)
	}
}

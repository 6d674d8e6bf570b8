package policies

import (
	"path/filepath"
	"strings"
	"testing"
)

// maxBytes is what a policy may add to the program.
const maxBytes = 6_000_000

// TestEveryPolicyHasItsCard: a policy without one could not say what it was trained on.
func TestEveryPolicyHasItsCard(t *testing.T) {
	for _, name := range Names() {
		data, err := Read(name)
		if err != nil || len(data) > maxBytes {
			t.Errorf("%s: %d bytes, %d at most: %v", name, len(data), maxBytes, err)
		}
		text := Card(name)
		for _, section := range []string{"# " + name, "## Data", "## Budget", "## Results", "## Made by", "haul train"} {
			if !strings.Contains(text, section) {
				t.Errorf("%s.md has no %q", name, section)
			}
		}
	}
}

// TestPoliciesArePacked: weights that lie here as they are would be left out of the program.
func TestPoliciesArePacked(t *testing.T) {
	plain, err := filepath.Glob("*.safetensors")
	if err != nil || len(plain) > 0 {
		t.Errorf("not packed: %v (%v): run zstd -19 --rm on them", plain, err)
	}
	if len(Names()) == 0 {
		t.Error("the program has no policies")
	}
}

func TestUnknownPolicy(t *testing.T) {
	if _, err := Read("../configs/quick"); err == nil || !strings.Contains(err.Error(), "no policy") {
		t.Error(err)
	}
	if Card("nosuch") != "" {
		t.Error("a card of nothing")
	}
}

package routing

import (
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/rules"
	"haul/problems"
)

// TestProblemFilesAreRefused: each op that asks for the rules of a file is refused in one sentence.
func TestProblemFilesAreRefused(t *testing.T) {
	b, _ := problems.Find("op")
	p, err := rules.Compile("op.go", b.Source(), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := kernel.Instances{Rules: kernel.Rules{Set: kernel.Compiled(p)}}
	for _, op := range []kernel.Op{&kernel.Generate{Instances: in}, &kernel.Rollout{Decoder: kernel.Decoder{Instances: in}}, &kernel.RolloutGrad{Decoder: kernel.Decoder{Instances: in}}} {
		if _, known, err := Bind(nil, op); !known || err == nil || !strings.Contains(err.Error(), "problem files (op) yet: --device cpu does") {
			t.Errorf("%s: %v", op.Kind(), err)
		}
	}
}

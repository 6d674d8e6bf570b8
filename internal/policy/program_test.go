package policy

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/run/runtest"
)

// TestDecoderHasTheSettings: every program of a policy, also the beam's, adds distances and
// pairs to the scores if and only if the settings say so.
func TestDecoderHasTheSettings(t *testing.T) {
	for _, asked := range []bool{true, false} {
		var sets []string
		if asked {
			sets = []string{"model.pointer_distance=0.3", "model.pointer_pairs=true"}
		}
		path, _ := saved(t, sets...)
		dev := runtest.Watch(openCPU(t, 1))
		p, err := Load(dev, path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Prepare(5, 30, Decode{Starts: true, Beam: 2, Expand: 2})
		if err != nil {
			t.Fatal(err)
		}
		if len(dev.Programs) != 2 {
			t.Errorf("%d programs", len(dev.Programs))
		}
		for _, prog := range dev.Programs {
			o := runtest.Op[*kernel.Rollout](t, prog.PerShard)
			if (o.Near == 0.3) != asked || (o.Pair != nil) != asked || (o.PairContext != nil) != asked {
				t.Errorf("asked %v: %s takes %g of the distance and %v of pairs", asked, prog.Name, o.Near, o.Pair)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestGATPolicy: settings reach the graph attention encoder, and every decoder makes valid routes
// with it.
func TestGATPolicy(t *testing.T) {
	path, _ := savedAs(t, tinyGAT(t, "model_gat.gat_negative_slope=0.3", "model.pointer_distance=0.4"))
	dev := runtest.Watch(openCPU(t, 1))
	p, err := Load(dev, path)
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]string{}
	for _, q := range p.model.Layout().Params {
		shapes[q.Name] = fmt.Sprint(q.Shape)
	}
	for name, want := range map[string]string{"embed.weight": "[16 4]", "layers.0.value.weight": "[16 16]", "layers.0.score.weight": "[4 16]", "layers.0.edge.weight": "[3 16]",
		"layers.0.far.weight": "[2 3]", "layers.0.gate.weight": "[64 16]", "layers.0.out.weight": "[16 32]", "decoder.graph.weight": "[16 16]", "layers.1.value.weight": ""} {
		if shapes[name] != want {
			t.Errorf("%s is %s, want %s", name, shapes[name], want)
		}
	}
	src := p.Source(rng.TestInstances)
	for _, name := range []string{"greedy", "pomo8", "sample:3", "sgbs:2,2", "eas:2"} {
		d, err := ParseDecode(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: 5, Decode: d, Validate: true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, prog := range dev.Programs {
		if prog.Name == "beam" || prog.Name == "active search" {
			continue
		}
		o, r := runtest.Op[*kernel.GraphAttention](t, prog.PerShard), runtest.Op[*kernel.Rollout](t, prog.PerShard)
		if o.Leak != 0.3 || o.Heads != 2 || r.Near != 0.4 {
			t.Errorf("%s: leak %g, %d heads, %g of the distance", prog.Name, o.Leak, o.Heads, r.Near)
		}
	}
	if _, err := (NewNetwork(&config.Config{Network: new(string)})); err == nil || !strings.Contains(err.Error(), "there are GT+RL, GAT+RL") {
		t.Errorf("a network that nobody knows: %v", err)
	}
}

package policy

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/run/runtest"
)

// TestDecoderIsToldTheSettings: every program of a policy, the beam's too, scores by the distances
// and pairs of its settings, and by none where they have none.
func TestDecoderIsToldTheSettings(t *testing.T) {
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
			if (o.Near == 0.3) != asked || (o.Pair != nil) != asked || (o.PairLoad != nil) != asked {
				t.Errorf("asked %v: %s takes %g of the distance and %v of pairs", asked, prog.Name, o.Near, o.Pair)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

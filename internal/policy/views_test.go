package policy

import (
	"fmt"
	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/safetensors"
	"haul/internal/vrp"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDecodersOfViews: every program that samples routes from every customer begins as in training,
// and a greedy one forces its starts. Programs with one start, and samples, begin at the depot.
func TestDecodersOfViews(t *testing.T) {
	for _, viewed := range []bool{false, true} {
		path, _ := saved(t, "baseline.type=pomo", fmt.Sprint("model.start_views=", viewed))
		dev := runtest.Watch(openCPU(t, 1))
		p, err := Load(dev, path)
		if err != nil {
			t.Fatal(err)
		}
		src := p.Source(rng.TestInstances)
		for name, every := range map[string]bool{"greedy": false, "sample:5": false, "sample8:5": false, "pomo": true, "pomo8": true, "pomo:1": true, "pomo8:1.5": true, "sgbs:2,2": true} {
			d, err := ParseDecode(name)
			if err != nil {
				t.Fatal(err)
			}
			dev.Programs = dev.Programs[:0]
			s, err := p.Prepare(src.N, src.Capacity, d)
			if err != nil {
				t.Fatal(err)
			}
			if d.Beam == 0 { // a beam exists in a stepper only
				if _, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: 3, Decode: d}); err != nil {
					t.Fatal(err)
				}
			}
			seen := map[string]int{}
			for _, prog := range dev.Programs {
				seen[prog.Name]++
				o := runtest.Op[*kernel.Rollout](t, prog.PerShard)
				want := every && prog.Name != "beam" // the beam's program completes solutions whose first action is fixed
				if view := want && viewed && d.Drawn; o.Viewed != view || o.Forced != (want && !view) {
					t.Errorf("views %v, %s, %s: forced %v, viewed %v", viewed, name, prog.Name, o.Forced, o.Viewed)
				}
			}
			if seen["solve"] == 0 || d.Beam == 0 && seen["evaluate"] == 0 || d.Beam > 0 && seen["beam"] == 0 {
				t.Errorf("%s: programs %v", name, slices.Collect(maps.Keys(seen)))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestViewsAreThePolicys: the same weights route differently if their settings ask for views, but
// only from every customer. The first customer may be the start's or another one, and several
// starts may choose the same one.
func TestViewsAreThePolicys(t *testing.T) {
	path, f := saved(t, "baseline.type=pomo", "model.start_views=true")
	f.Metadata["haul.config"] = strings.Replace(f.Metadata["haul.config"], "start_views: true", "start_views: false", 1)
	forced := filepath.Join(t.TempDir(), "forced.safetensors")
	if err := run.WriteAtomic(forced, func(w io.Writer) error { return safetensors.Write(w, f) }); err != nil {
		t.Fatal(err)
	}
	tours := map[string]map[string][][]int32{}
	for name, path := range map[string]string{"viewed": path, "forced": forced} {
		p, err := Load(openCPU(t, 1), path)
		if err != nil {
			t.Fatal(err)
		}
		if p.Config.Model.StartViews != (name == "viewed") {
			t.Fatalf("%s: start_views is %v", name, p.Config.Model.StartViews)
		}
		src := p.Source(rng.TestInstances)
		tours[name] = map[string][][]int32{}
		for _, decode := range []string{"greedy", "sample:4", "pomo:1"} {
			d, err := ParseDecode(decode)
			if err != nil {
				t.Fatal(err)
			}
			e, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: 40, Decode: d, Validate: true, KeepTours: true})
			if err != nil {
				t.Fatal(err)
			}
			tours[name][decode] = e.Tours
		}
		s, err := p.Prepare(src.N, src.Capacity, Decode{Starts: true, Drawn: true})
		if err != nil {
			t.Fatal(err)
		}
		b := vrp.NewBatch(1, src.N, src.Capacity)
		own, shared := 0, 0
		for i := range uint64(20) {
			src.Fill(b, i)
			if _, _, err := s.Solve(t.Context(), b.Problem(0)); err != nil {
				t.Fatal(err)
			}
			firsts := map[int32]bool{}
			for k := range s.starts {
				first := s.actions[k*s.steps]
				if first == int32(k+1) {
					own++
				}
				if firsts[first] {
					shared++
				}
				firsts[first] = true
			}
		}
		if all := 20 * s.starts; name == "forced" && (own != all || shared > 0) || name == "viewed" && (own == 0 || own == all || shared == 0) {
			t.Errorf("%s: %d of %d starts begin at their own customer, %d where another has", name, own, all, shared)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, decode := range []string{"greedy", "sample:4", "pomo:1"} {
		same := slices.EqualFunc(tours["viewed"][decode], tours["forced"][decode], slices.Equal)
		if same != (decode != "pomo:1") {
			t.Errorf("%s: equal tours with views and without: %v", decode, same)
		}
	}
}

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/rule"
)

// hostSteps is four marked steps of a CPU job.
func hostSteps(body func(s *synth, step int)) *synth {
	s := newSynth()
	for n := range 4 {
		start, at := s.now, s.hold()
		body(s, n)
		s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	}
	return s
}

// smallOps adds n operators of this duration, each after a pause, in µs.
func (s *synth) smallOps(n int, us, pause float64) {
	for range n {
		s.now += pause - 2 // which hostOp leaves
		s.hostOp("aten::add", "[64]", `"float"`, us, 0, nil)
	}
}

// A CPU job whose time is the issue of small operators is named, with what the issue takes; one of
// large operators is not, nor one whose Python takes longer than the operators explain.
func TestSmallOperatorsOnTheCPU(t *testing.T) {
	p := readPages(t, "dispatch.txt")
	large := func(s *synth, n int) {
		for range n {
			s.hostOp("aten::linear", "[96,192],[192,192],[192]", `"float","float","float"`, 300, 0, nil)
		}
	}
	for _, c := range []struct {
		name  string
		body  func(s *synth)
		want  string  // the first finding
		saves float64 // ms
	}{
		{"6,000 small ones", func(s *synth) { s.smallOps(6000, 1, 3) }, "dispatch-bound", 24},
		{"on a machine five times as slow", func(s *synth) { s.smallOps(6000, 5, 15) }, "dispatch-bound", 120},
		{"six thousand large ones", func(s *synth) { s.smallOps(6000, 150, 3) }, "", 0},
		{"more work than issue", func(s *synth) { s.smallOps(6000, 10, 3) }, "", 0},
		{"half and a little more", func(s *synth) { s.smallOps(1000, 1, 3); large(s, 13) }, "dispatch-bound", 4},
		{"a little less than half", func(s *synth) { s.smallOps(1000, 1, 3); large(s, 14) }, "", 0},
		{"32 per step", func(s *synth) { s.smallOps(32, 1, 3) }, "dispatch-bound", 0.128},
		{"31 per step", func(s *synth) { s.smallOps(31, 1, 3) }, "python-bound", 0.093},
		{"Python four times as long", func(s *synth) { s.smallOps(1000, 3, 12) }, "dispatch-bound", 15},
		{"Python five times as long", func(s *synth) { s.smallOps(1000, 3, 15) }, "python-bound", 15},
		{"operators inside", func(s *synth) { // four times as long, and three inside
			for range 1000 {
				s.hostOp("aten::mul", "[64]", `"float"`, 4, 0, func() {
					for range 3 {
						s.now += 0.5
						s.hostOp("aten::to", "[]", `"float"`, 0.4, 0, nil)
						s.now -= 2
					}
				})
				s.now++
			}
		}, "dispatch-bound", 7},
		{"single values", func(s *synth) { // covered by sync-storm
			for range 1000 {
				s.hostOp("aten::select", "[300],[],[]", `"float","Scalar","Scalar"`, 1, 0, nil)
				s.hostOp("aten::item", "[]", `"float"`, 1, 0, nil)
			}
		}, "sync-storm", 6},
		{"none without work", func(s *synth) { s.smallOps(1000, 10, 20) }, "dispatch-bound", 25},
		{"in the loader", func(s *synth) {
			start, at := s.now, s.hold()
			s.smallOps(1000, 1, 3)
			s.events[at] = s.event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, s.now-start, "")
			s.smallOps(40, 1, 3)
		}, "loader-starved", 4},
	} {
		r := diagnose(t, hostSteps(func(s *synth, _ int) { c.body(s) }).json())
		checkFindings(t, r)
		got := ""
		if len(r.Findings) > 0 {
			got = r.Findings[0].ID
		}
		if got != c.want || c.want != "" && !near(r.Findings[0].SavesMS, c.saves) || c.want != "dispatch-bound" && slices.Contains(ids(r), "dispatch-bound") {
			t.Errorf("%s: %v, want %s at %v ms", c.name, costsOf(r), c.want, c.saves)
		}
		if c.want == "dispatch-bound" {
			if len(r.Findings) > 1 {
				t.Errorf("%s: a second time in %v", c.name, costsOf(r))
			}
			p.hold(t, c.name, found(r))
		}
	}
}

// Where operators launch, the CPU's side of a GPU job is seen; Haul's own steps have no Python.
func TestSmallOperatorsOfAGPU(t *testing.T) {
	loop := func(s *synth, _ int) { s.smallOps(1000, 1, 3) }
	own := hostSteps(loop)
	launches := hostSteps(func(s *synth, n int) { s.op("aten::mul", "", 3, func() { s.call("cudaLaunchKernel", 2) }); loop(s, n) })
	works := hostSteps(func(s *synth, n int) { loop(s, n); s.dense(4, 100); s.now = s.gpu })
	for name, data := range map[string]string{
		"Haul":        strings.Replace(string(own.json()), `{"schemaVersion"`, `{"haul":{},"schemaVersion"`, 1),
		"no GPU work": string(launches.json()),
		"a GPU":       string(works.json()),
	} {
		if r := diagnose(t, []byte(data)); slices.Contains(ids(r), "dispatch-bound") || r.Steps != 4 {
			t.Errorf("%s: %v", name, costsOf(r))
		}
	}
}

// Programs that use the core lengthen operators and pauses alike: the cost is in proportion to the
// rest. Operators alone that sometimes take long have more work.
func TestSmallOperatorsOnABusyMachine(t *testing.T) {
	for _, c := range []struct {
		name        string
		ops, pauses float64 // µs that every two hundredth of them loses
		want        bool
		noted       bool
		share       float64
	}{
		{"a quiet machine", 0, 0, true, false, 1},
		{"operators and pauses", 900, 2700, true, true, 1},
		{"operators", 4000, 0, false, false, 0},
		{"pauses", 0, 4000, false, false, 0}, // in every step at the same place: Python's
	} {
		r := diagnose(t, hostSteps(func(s *synth, _ int) {
			for i := range 2000 {
				us, pause := 1.0, 3.0
				switch i % 200 {
				case 50:
					us += c.ops
				case 150:
					pause += c.pauses
				}
				s.smallOps(1, us, pause)
			}
		}).json())
		checkFindings(t, r)
		i := slices.Index(ids(r), "dispatch-bound")
		if (i >= 0) != c.want || i >= 0 && !near(r.Findings[i].Share, c.share) {
			t.Errorf("%s: %v", c.name, costsOf(r))
			continue
		}
		if i >= 0 && strings.Contains(strings.Join(r.Findings[i].Evidence, ";"), "other programs hold the core for 36.0 ms per step") != c.noted {
			t.Errorf("%s: %v", c.name, r.Findings[i].Evidence)
		}
		if i >= 0 && (len(r.Findings) > 1 || r.Findings[i].Severity != rule.Critical) {
			t.Errorf("%s: %v", c.name, costsOf(r))
		}
	}
}

// An optimizer that updates parameters separately gets advice against it.
func TestSmallOperatorsOfAnOptimizer(t *testing.T) {
	r := diagnose(t, hostSteps(func(s *synth, _ int) {
		start, at := s.now, s.hold()
		s.smallOps(800, 2, 6)
		s.events[at] = s.event("user_annotation", "Optimizer.step#Adam.step", start, s.now-start, "")
	}).json())
	if !slices.Equal(ids(r), []string{"dispatch-bound"}) || !strings.Contains(strings.Join(r.Findings[0].Evidence, ";"), "the optimizer visits parameters one by one, 800 operators per step: give it fused=True") {
		t.Errorf("%v %+v", costsOf(r), r.Findings)
	}
}

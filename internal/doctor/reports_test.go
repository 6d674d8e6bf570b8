package doctor

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
)

// Every figure of a report is held here: the whole text for the recordings of testdata, and for
// built traces what is found, with its cost and its evidence. A change must be looked at before
// `go test ./internal/doctor -reports` writes the pages anew.
var writeReports = flag.Bool("reports", false, "write the reports in testdata/reports")

// pages are the sections of one file by name.
type pages struct {
	path     string
	sections map[string]string
}

const sectionMark = "== "

func readPages(t *testing.T, name string) *pages {
	t.Helper()
	p := &pages{path: filepath.Join("testdata", "reports", name), sections: map[string]string{}}
	if *writeReports {
		t.Cleanup(func() {
			var b strings.Builder
			for _, s := range slices.Sorted(maps.Keys(p.sections)) {
				b.WriteString(sectionMark + s + "\n" + p.sections[s])
			}
			if err := os.WriteFile(p.path, []byte(b.String()), 0o644); err != nil {
				t.Error(err)
			}
		})
		return p
	}
	data, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range strings.Split("\n"+string(data), "\n"+sectionMark)[1:] {
		name, body, _ := strings.Cut(s, "\n")
		p.sections[name] = strings.TrimSuffix(body, "\n") + "\n"
	}
	return p
}

// hold compares one section, line by line.
func (p *pages) hold(t *testing.T, section, got string) {
	t.Helper()
	got = strings.TrimSuffix(got, "\n") + "\n"
	if *writeReports {
		p.sections[section] = got
		return
	}
	was, is := strings.Split(p.sections[section], "\n"), strings.Split(got, "\n")
	for i := range max(len(was), len(is)) {
		var x, y string
		if i < len(was) {
			x = was[i]
		}
		if i < len(is) {
			y = is[i]
		}
		if x != y {
			t.Errorf("%s, %s, line %d: %q, was %q", p.path, section, i+1, y, x)
			return
		}
	}
}

// found is a report's findings with their figures, and the sums that a step is made of.
func found(r *report.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d steps of %.4g ms, busy %.4g; %+v; %v\n", r.Steps, r.StepMS, r.GPUBusyShare, r.PerStep, r.Recorded)
	for _, i := range r.Idle {
		fmt.Fprintf(&b, "idle %.4g ms %s\n", i.MS, i.Kind)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %.4g ms %.4g\n", f.ID, f.Severity, f.SavesMS, f.Share)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "  %s\n", e)
		}
		fmt.Fprintf(&b, "  %s\n", f.Remedy)
	}
	for _, x := range r.Remarks {
		fmt.Fprintf(&b, "%s\n", x)
	}
	return b.String()
}

func TestReportsOfRecordings(t *testing.T) {
	p := readPages(t, "recordings.txt")
	for _, c := range truths {
		p.hold(t, c.name, text(t, diagnoseFile(t, recording(c.name))))
	}
}

// everything is three steps with something for each view: a loader, modules and their backward,
// overlapped and exposed collectives, copies of every kind, an optimizer, memory, a graph.
func everything() []byte {
	s := newSynth()
	s.captured(3, false)
	total := 200 * mb
	for n := range 3 {
		s.gpu = s.now
		s.step(n, func() {
			loaderFor(1500)(s)
			s.op("aten::to", "", 15, func() { s.copy("HtoD (Pageable -> Device)", 8<<20, 700); s.wait() })
			s.op("aten::to", "", 15, func() { s.copy("HtoD (Pinned -> Device)", 4<<20, 200) })
			outer := s.now
			for i := range 4 {
				start := s.now
				s.hostOp("aten::linear", "[4096,1024],[1024,1024]", `"c10::BFloat16","c10::BFloat16"`, 5, 0, func() { s.launch("nvjet_a", 40+10*float64(i), 8); s.memory(10+i, 8*mb, &total, 1) })
				s.hostOp("aten::gelu", "[4096,1024]", `"c10::BFloat16"`, 5, 0, func() { s.launch("gelu_kernel", 12, 8); s.memory(20+i, 8*mb, &total, 1) })
				s.emit("python_function", fmt.Sprintf("nn.Module: Block_%d", i), start, s.now-start, "")
			}
			s.emit("python_function", "nn.Module: Net_0", outer, s.now-outer, "")
			s.hostOp("aten::conv2d", "[32,64,56,56],[128,64,3,3],[],[],[],[],[]", `"float","float"`, 5, 0, func() { s.launch("cudnn_conv", 300, 4) })
			for range 4 {
				s.op("autograd::engine::evaluate_function: AddmmBackward0", "", 15, func() {
					s.hostOp("aten::mm", "[4096,1024],[1024,1024]", `"c10::BFloat16","c10::BFloat16"`, 5, 0, func() { s.launch("nvjet_b", 90, 8) })
				})
			}
			s.exchange(s.gpu-100, 900, 32<<20)
			s.gpu += 800
			start := s.now
			for range 6 {
				s.kernelOp("aten::add_", "", 20, 8)
			}
			s.emit("user_annotation", "Optimizer.step#SGD.step", start, s.now-start, "")
			for i := range 4 {
				s.memory(10+i, -8*mb, &total, 1)
				s.memory(20+i, -8*mb, &total, 1)
			}
			s.replay("nvjet_a", "gelu_kernel", "nvjet_a", "gelu_kernel", "nvjet_a", "gelu_kernel")
			s.item()
			s.op("aten::to", "", 15, func() { s.copy("DtoH (Device -> Pinned)", 2<<20, 150) })
		})
	}
	return s.json()
}

func TestReportOfEverything(t *testing.T) {
	p := readPages(t, "views.txt")
	p.hold(t, "everything", text(t, diagnose(t, everything())))
	s := newSynth()
	s.sequence = 10
	host := 50 * mb
	for n := range 4 {
		s.step(n, func() {
			s.memory(5, 30*mb, &host, 0)
			first, last := s.layers(4, "float", 100)
			s.walk(first, last, nil)
			s.memory(5, -30*mb, &host, 0)
			loaderFor(900)(s)
		})
	}
	p.hold(t, "a CPU job", text(t, diagnose(t, s.json())))
}

func TestReportsOfRanks(t *testing.T) {
	p := readPages(t, "ranks.txt")
	skew := []float64{0, 7e6, -3e6, 123}
	for name, late := range map[string]map[int]func(*synth){
		"a straggler":          {2: loaderFor(6000)},
		"a straggler, compute": {1: func(s *synth) { s.dense(30, 100) }},
		"nobody":               {},
		"two":                  {1: loaderFor(5000), 3: loaderFor(5200)},
	} {
		j := report.JoinRanks(rankReports(t, func(r int) float64 { return skew[r] }, late))
		var b strings.Builder
		if err := j.WriteText(&b, report.Text{Breakdown: true}); err != nil {
			t.Fatal(err)
		}
		p.hold(t, name, b.String())
	}
}

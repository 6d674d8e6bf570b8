package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// truths are the facts about each recording, from the author of its program.
var truths = []struct {
	name    string
	stepMS  float64
	busy    float64
	first   []string // a true first finding; empty if all findings must be notes
	present []string
	most    rule.Severity // the highest severity that would be true
}{
	{"fp32_matmul", 44.77, 0.983, []string{"fp32-matmul"}, nil, rule.Critical},
	{"gpu_cost_loop", 101.41, 0.0232, []string{"launch-bound"}, nil, rule.Critical},
	{"healthy_bf16", 4.53, 0.912, nil, nil, rule.Note},
	{"item_sync", 47.66, 0.0349, []string{"sync-storm"}, []string{"sync-storm", "transfer-storm"}, rule.Critical},
	{"loader_starved", 102.75, 0.175, []string{"loader-starved"}, nil, rule.Critical},
	{"pomo_cvrp20", 181.18, 0.0536, []string{"launch-bound", "sync-storm"}, []string{"launch-bound", "sync-storm"}, rule.Critical},
	{"seed_gt_rl_tiny_1_b32", 603.33, 0.0451, []string{"launch-bound", "sync-storm"}, []string{"launch-bound", "sync-storm"}, rule.Critical},
	{"tensor_hoisted", 30.73, 0.949, []string{"fp32-matmul"}, nil, rule.Warning},
	{"transfer_storm", 31.15, 0.0406, []string{"transfer-storm"}, nil, rule.Critical},
}

func recording(name string) string { return filepath.Join("testdata", name+".json.gz") }

func diagnoseFile(t testing.TB, path string) *report.Report {
	t.Helper()
	tr, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Diagnose(tr)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reports caches the recordings' reports, for tests that do not change them.
var reports = map[string]*report.Report{}

func reportOf(t testing.TB, name string) *report.Report {
	t.Helper()
	if reports[name] == nil {
		reports[name] = diagnoseFile(t, recording(name))
	}
	return reports[name]
}

func rank(s rule.Severity) int {
	return slices.Index([]rule.Severity{rule.Note, rule.Warning, rule.Critical}, s)
}

func ids(r *report.Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		out = append(out, f.ID)
	}
	return out
}

func TestRecordingsGiveTheTruth(t *testing.T) {
	for _, c := range truths {
		t.Run(c.name, func(t *testing.T) {
			r := diagnoseFile(t, recording(c.name))
			if math.Abs(r.StepMS-c.stepMS) > 0.01*c.stepMS {
				t.Errorf("step %.2f ms, want %.2f", r.StepMS, c.stepMS)
			}
			if math.Abs(r.GPUBusyShare-c.busy) > 0.02*c.busy {
				t.Errorf("busy %.4f, want %.4f", r.GPUBusyShare, c.busy)
			}
			got := ids(r)
			if len(c.first) > 0 && (len(got) == 0 || !slices.Contains(c.first, got[0])) {
				t.Errorf("findings %v, want one of %v first", got, c.first)
			}
			for _, id := range c.present {
				if !slices.Contains(got, id) {
					t.Errorf("findings %v, want %s among them", got, id)
				}
			}
			checkFindings(t, r)
			for _, f := range r.Findings {
				if rank(f.Severity) > rank(c.most) {
					t.Errorf("%s is %s, at most %s is true", f.ID, f.Severity, c.most)
				}
			}
			if c.most == rule.Note && !strings.Contains(r.Verdict(), "healthy") {
				t.Errorf("a healthy run is told %q", r.Verdict())
			}
		})
	}
}

// checkFindings holds for every report: ordered by cost, costs within the step, evidence and remedy
// given.
func checkFindings(t testing.TB, r *report.Report) {
	t.Helper()
	var sum float64
	for i, f := range r.Findings {
		sum += f.SavesMS
		if i > 0 && f.SavesMS > r.Findings[i-1].SavesMS {
			t.Errorf("%s (%v ms) stands behind %s (%v ms)", f.ID, f.SavesMS, r.Findings[i-1].ID, r.Findings[i-1].SavesMS)
		}
		if f.SavesMS <= 0 || math.Abs(f.Share*r.StepMS-f.SavesMS) > 1e-6*f.SavesMS {
			t.Errorf("%s: %v ms is not %v of %v ms", f.ID, f.SavesMS, f.Share, r.StepMS)
		}
		if len(f.Evidence) == 0 || f.Remedy == "" {
			t.Errorf("%s has no evidence or no remedy", f.ID)
		}
	}
	if sum > r.StepMS*1.0001 {
		t.Errorf("findings cost %v ms of a step of %v ms", sum, r.StepMS)
	}
}

// A finding must not depend on how a program spells its own things, nor on when it ran.
func TestUserNamesAndTheClockDoNotMatter(t *testing.T) {
	for _, c := range truths {
		if c.stepMS > 600 { // the largest adds time and no kind of cause
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			want := reportOf(t, c.name)
			raw := readRaw(t, recording(c.name))
			for i := range raw.Events {
				e := &raw.Events[i]
				if isUsers(e) {
					e.Name = "renamed " + strings.Repeat("x", len(e.Name)%7)
				}
				if e.Ts != "" {
					start, _ := e.span()
					e.Ts = microseconds(start - 3844900000000125)
				}
			}
			data, err := json.Marshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			got := diagnose(t, data)
			if math.Abs(got.StepMS-want.StepMS) > 1e-9 || math.Abs(got.GPUBusyShare-want.GPUBusyShare) > 1e-9 {
				t.Errorf("step and busy share moved: %v %v, want %v %v", got.StepMS, got.GPUBusyShare, want.StepMS, want.GPUBusyShare)
			}
			if len(got.Findings) != len(want.Findings) {
				t.Fatalf("findings %v, want %v", ids(got), ids(want))
			}
			for i, f := range got.Findings {
				w := want.Findings[i]
				if f.ID != w.ID || f.Severity != w.Severity || math.Abs(f.SavesMS-w.SavesMS) > 1e-9 {
					t.Errorf("finding %d: %s %s %v, want %s %s %v", i, f.ID, f.Severity, f.SavesMS, w.ID, w.Severity, w.SavesMS)
				}
			}
		})
	}
}

// isUsers tells the names that a user chose from the vendor's.
func isUsers(e *rawEvent) bool {
	switch e.Cat {
	case "user_annotation", "gpu_user_annotation":
		return !strings.HasPrefix(e.Name, "ProfilerStep#") && !strings.HasPrefix(e.Name, "enumerate(DataLoader)")
	case "python_function", "fwdbwd", "ac2g", "Trace":
		return true
	case "kernel":
		return !slices.ContainsFunc([]string{"gemm", "nvjet", "cudnn", "cutlass", "cublas"}, func(s string) bool { return strings.Contains(e.Name, s) })
	}
	return false
}

func microseconds(ns int64) json.Number {
	b, _ := json.Marshal(float64(ns) / 1000)
	return json.Number(b)
}

func TestJSONHasTheKeysScriptsRead(t *testing.T) {
	data, err := json.Marshal(diagnoseFile(t, recording("item_sync")))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Busy     *float64 `json:"gpu_busy_share"`
		Step     *float64 `json:"step_ms"`
		Findings []map[string]any
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if v.Busy == nil || v.Step == nil || len(v.Findings) == 0 {
		t.Fatalf("missing keys in %s", data)
	}
	for _, key := range []string{"id", "severity", "share", "evidence", "remedy", "saves_ms"} {
		if _, ok := v.Findings[0][key]; !ok {
			t.Errorf("a finding has no %q", key)
		}
	}
}

// A healthy report is a list of no findings, not a missing list.
func TestNoFindingsAreAnEmptyList(t *testing.T) {
	data, err := json.Marshal(diagnoseFile(t, recording("healthy_bf16")))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(`"findings":[]`)) {
		t.Errorf("%s", data)
	}
}

func TestTestdataStaysSmall(t *testing.T) {
	files, err := filepath.Glob("testdata/*.gz")
	if err != nil || len(files) != len(truths) {
		t.Fatalf("%d recordings, %v, want %d", len(files), err, len(truths))
	}
	var sum int64
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	if sum > 3<<20 {
		t.Errorf("testdata holds %d bytes", sum)
	}
}

// docs/verdict.md quotes this report: a figure that changes here must change there.
func TestVerdictPageQuotesTheReport(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "verdict.md"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := diagnoseFile(t, recording("seed_gt_rl_tiny_1_b32")).WriteText(&b, report.Text{}); err != nil {
		t.Fatal(err)
	}
	for _, figure := range []string{"603 ms", "4.5 %", "576 ms", "9,807", "21.9 ms", "3,856", "22.8 ms", "3,855", "4.80 ms", "21.1 kB",
		"314 ms", "121 ms", "99.4 ms", "20.4 ms", "13.8 ms", "300 ms", "50 %", "153 ms", "25 %", "2,775", "2,365", "37.6 ms", "6.2 %", "1,081", "451 ms", "566 ms", "303 ms"} {
		if !strings.Contains(string(page), figure) || !strings.Contains(b.String(), figure) {
			t.Errorf("%q: on the page %v, in the report %v", figure, strings.Contains(string(page), figure), strings.Contains(b.String(), figure))
		}
	}
}

// costsOf lists findings with what they cost, for messages.
func costsOf(r *report.Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s (%s, %.4g ms)", f.ID, f.Severity, f.SavesMS))
	}
	return out
}

// ahead reports whether the steps are the GPU's windows.
func ahead(r *report.Report) bool {
	return strings.Contains(strings.Join(r.Remarks, "\n"), "the CPU runs ahead")
}

func contains(s, part string) bool { return strings.Contains(s, part) }

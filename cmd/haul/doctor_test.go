package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recording is a trace of a step that reads a value a route; see internal/doctor/testdata.
var recording = filepath.Join("..", "..", "internal", "doctor", "testdata", "item_sync.json.gz")

func TestDoctor(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	v := object(t, "doctor", recording, "--json", "--html", page)
	findings := v["findings"].([]any)
	first := findings[0].(map[string]any)
	if v["gpu_busy_share"].(float64) > 0.04 || v["step_ms"].(float64) < 40 || first["id"] != "sync-storm" {
		t.Errorf("%v", v)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "sync-storm") {
		t.Errorf("the page: %v, %d bytes", err, len(text))
	}
	if r := haul(t, "doctor", recording); r.code != exitDone || !strings.Contains(r.stdout, "1. sync-storm") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestDoctorNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no trace", []string{"doctor"}, exitUsage, "which trace?"},
		{"one trace to compare", []string{"doctor", "--diff", "a"}, exitUsage, "--diff compares two traces"},
		{"two missing", []string{"doctor", "nowhere1.json", "nowhere2.json"}, exitFailed, "nowhere1.json"},
		{"an empty folder", []string{"doctor", t.TempDir()}, exitFailed, "no trace in this folder"},
		{"a report of nsys", []string{"doctor", write(t, "x.nsys-rep", "binary")}, exitFailed, "nsys export --type sqlite"},
		{"missing file", []string{"doctor", "nowhere.json"}, exitFailed, "nowhere.json"},
		{"not JSON", []string{"doctor", write(t, "a.json", "hello")}, exitFailed, "a.json: not a trace"},
		{"empty", []string{"doctor", write(t, "b.json", `{"traceEvents":[]}`)}, exitFailed, "b.json: the trace holds no events"},
		{"cut off", []string{"doctor", write(t, "c.json", `{"traceEvents":[{"ph":"X"`)}, exitFailed, "c.json: the JSON is cut off"},
		{"a time that is none", []string{"doctor", recording, "--from", "nan"}, exitUsage, "--from is NaN and --to 0: --from must be below --to"},
		{"a trace twice", []string{"doctor", recording, recording}, exitUsage, "is given twice: each trace is a rank of its own"},
		{"a trace in its folder", []string{"doctor", recording, filepath.Dir(recording)}, exitUsage, "is given twice"},
		{"page nowhere", []string{"doctor", recording, "--html", filepath.Join(t.TempDir(), "no", "page.html")}, exitFailed, "cannot write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := haul(t, c.args...)
			if r.code != c.code || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
				t.Errorf("exit %d, %q, stdout %q; want %d and %q", r.code, r.stderr, r.stdout, c.code, c.want)
			}
		})
	}
}

// Ranks, a comparison and the numbers on request, as a user asks for them.
func TestDoctorOverSeveralTraces(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rank0.json.gz", "rank1.json.gz"} {
		data, err := os.ReadFile(recording)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "page.html")
	v := object(t, "doctor", dir, "--json", "--html", page)
	if ranks := v["ranks"].([]any); len(ranks) != 2 || ranks[1].(map[string]any)["rank"] != 1.0 || v["findings"] == nil || v["recorded"] == nil {
		t.Errorf("%v", v)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "haul doctor, 2 ranks") {
		t.Errorf("the page: %v, %d bytes", err, len(text))
	}
	if r := haul(t, "doctor", "--diff", recording, recording); r.code != exitDone || !strings.Contains(r.stdout, "The step takes as long as before") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := haul(t, "doctor", "--breakdown", recording); r.code != exitDone || !strings.Contains(r.stdout, "Kernels by what they compute") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// TestRecordingAdviceMarksSteps: without schedule= PyTorch writes no ProfilerStep, so the advice of
// the help page must have it, and the call that ends a step.
func TestRecordingAdviceMarksSteps(t *testing.T) {
	var out, words bytes.Buffer
	if code := execute(t.Context(), []string{"doctor", "--help"}, &out, &words); code != 0 {
		t.Fatalf("code %d: %s", code, &words)
	}
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"the help": out.String(), "docs/doctor.md": string(page)} {
		for _, want := range []string{"schedule=schedule(", "prof.step()", "export_chrome_trace"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", where, want)
			}
		}
	}
}

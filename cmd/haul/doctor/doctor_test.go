package doctor_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/root"
)

// recording is a trace of a step that reads a value a route; see internal/doctor/testdata.
var recording = filepath.Join("..", "..", "..", "internal", "doctor", "testdata", "item_sync.json.gz")

func TestDoctor(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	v := inprocess.Object(t, "doctor", recording, "--json", "--html", page)
	findings := v["findings"].([]any)
	first := findings[0].(map[string]any)
	if v["gpu_busy_share"].(float64) > 0.04 || v["step_ms"].(float64) < 40 || first["id"] != "sync-storm" {
		t.Errorf("%v", v)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "sync-storm") {
		t.Errorf("the page: %v, %d bytes", err, len(text))
	}
	if r := inprocess.Run(t, "doctor", recording); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "1. sync-storm") {
		t.Errorf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

func TestDoctorNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no trace", []string{"doctor"}, cli.ExitUsage, "which trace?"},
		{"one trace to compare", []string{"doctor", "--diff", "a"}, cli.ExitUsage, "--diff compares two traces"},
		{"two missing", []string{"doctor", "nowhere1.json", "nowhere2.json"}, cli.ExitFailed, "nowhere1.json"},
		{"an empty folder", []string{"doctor", t.TempDir()}, cli.ExitFailed, "no trace in this folder"},
		{"a report of nsys", []string{"doctor", clitest.Write(t, "x.nsys-rep", "binary")}, cli.ExitFailed, "nsys export --type sqlite"},
		{"missing file", []string{"doctor", "nowhere.json"}, cli.ExitFailed, "nowhere.json"},
		{"not JSON", []string{"doctor", clitest.Write(t, "a.json", "hello")}, cli.ExitFailed, "a.json: not a trace"},
		{"empty", []string{"doctor", clitest.Write(t, "b.json", `{"traceEvents":[]}`)}, cli.ExitFailed, "b.json: the trace holds no events"},
		{"cut off", []string{"doctor", clitest.Write(t, "c.json", `{"traceEvents":[{"ph":"X"`)}, cli.ExitFailed, "c.json: the JSON is cut off"},
		{"a time that is none", []string{"doctor", recording, "--from", "nan"}, cli.ExitUsage, "--from is NaN and --to 0: --from must be below --to"},
		{"a trace twice", []string{"doctor", recording, recording}, cli.ExitUsage, "is given twice: each trace is a rank of its own"},
		{"a trace in its folder", []string{"doctor", recording, filepath.Dir(recording)}, cli.ExitUsage, "is given twice"},
		{"page nowhere", []string{"doctor", recording, "--html", filepath.Join(t.TempDir(), "no", "page.html")}, cli.ExitFailed, "cannot write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := inprocess.Run(t, c.args...)
			if r.Code != c.code || !strings.Contains(r.Stderr, c.want) || strings.Count(r.Stderr, "\n") != 1 || r.Stdout != "" {
				t.Errorf("exit %d, %q, stdout %q; want %d and %q", r.Code, r.Stderr, r.Stdout, c.code, c.want)
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
	v := inprocess.Object(t, "doctor", dir, "--json", "--html", page)
	if ranks := v["ranks"].([]any); len(ranks) != 2 || ranks[1].(map[string]any)["rank"] != 1.0 || v["findings"] == nil || v["recorded"] == nil {
		t.Errorf("%v", v)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "haul doctor, 2 ranks") {
		t.Errorf("the page: %v, %d bytes", err, len(text))
	}
	if r := inprocess.Run(t, "doctor", "--diff", recording, recording); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "The step takes as long as before") {
		t.Errorf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := inprocess.Run(t, "doctor", "--breakdown", recording); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "Kernels by what they compute") {
		t.Errorf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// TestRecordingAdviceMarksSteps: without schedule= PyTorch writes no ProfilerStep, so the advice of
// the help page must have it, and the call that ends a step.
func TestRecordingAdviceMarksSteps(t *testing.T) {
	var out, words bytes.Buffer
	if code := root.Execute(t.Context(), []string{"doctor", "--help"}, &out, &words); code != 0 {
		t.Fatalf("code %d: %s", code, &words)
	}
	page, err := os.ReadFile("../../../docs/doctor.md")
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

// TestAPageThroughAPipe: the doctor's page alone is on standard output.
func TestAPageThroughAPipe(t *testing.T) {
	r := inprocess.Run(t, "doctor", "../../../docs/examples/trace.json.gz", "--html", "-")
	if r.Code != cli.ExitDone || !strings.HasPrefix(r.Stdout, "<!") || strings.Count(r.Stdout, "<html") != 1 || !strings.Contains(r.Stderr, "What holds this run back") {
		t.Errorf("exit %d, %.60q, %.60q", r.Code, r.Stdout, r.Stderr)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file named -")
	}
}

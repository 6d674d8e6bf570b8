package diagnosis_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/diagnosis"
)

func ExampleOf() {
	r, err := diagnosis.Of(context.Background(), "../docs/examples/trace.json.gz")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range r.Findings {
		fmt.Printf("%s costs %.0f of %.0f ms\n", f.ID, f.SavesMS, r.StepMS)
	}
	// Output: fp32-matmul costs 37 of 45 ms
}

// What a trace shows is passed on whole.
func TestReportIsWhole(t *testing.T) {
	r, err := diagnosis.Of(t.Context(), "../docs/examples/before.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	if r.GPUBusy <= 0 || r.GPUBusy > 1 || r.StepMS <= 0 || r.Steps < 1 || r.Verdict == "" || len(r.Findings) == 0 {
		t.Errorf("the report has holes: %+v", r)
	}
	for _, f := range r.Findings {
		if f.ID == "" || f.Severity == "" || f.Share <= 0 || len(f.Evidence) == 0 || f.Remedy == "" {
			t.Errorf("the finding has holes: %+v", f)
		}
	}
}

func TestFilesThatAreNoTrace(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"words.json": "hello", "empty.json": "", "other.json": `{"a": 1}`} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := diagnosis.Of(t.Context(), path)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v; want one line that names it", name, r, err)
		}
		if _, err := diagnosis.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s was read as a trace", name)
		}
	}
	if _, err := diagnosis.Of(t.Context(), filepath.Join(dir, "missing.json")); err == nil {
		t.Error("a file that is not there was diagnosed")
	}
}

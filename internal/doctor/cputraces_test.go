package doctor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
)

// recordedTruth is a file that scripts/doctor-cpu-traces and scripts/doctor-gpu-traces write with
// their traces: the finding that each must have first, or no finding of its case.
type recordedTruth struct {
	Traces map[string]struct {
		Want []string
		Rank int
	}
}

func readTruth(t *testing.T, variable string) (string, recordedTruth) {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skip(variable + " does not say where the recorded traces are")
	}
	data, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var truth recordedTruth
	if err := json.Unmarshal(data, &truth); err != nil {
		t.Fatal(err)
	}
	return dir, truth
}

// findingsOf judges a trace, or the ranks of a folder.
func findingsOf(t *testing.T, path string) []rule.Finding {
	t.Helper()
	if info, err := os.Stat(path); err != nil {
		t.Fatal(err)
	} else if !info.IsDir() {
		r := diagnoseFile(t, path)
		checkFindings(t, r)
		return r.Findings
	}
	paths, err := Expand([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	var list []*report.Report
	for _, p := range paths {
		r := diagnoseFile(t, p)
		r.File = p
		list = append(list, r)
	}
	return report.JoinRanks(list).Findings
}

// listed is findings in a line.
func listed(found []rule.Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprintf("%s %s %.0f %%", f.ID, f.Severity, 100*f.Share))
	}
	return strings.Join(out, ", ")
}

// Traces of CPU jobs with one known fault each: it is the first finding. Without the fault all
// findings are notes.
func TestCPUTraces(t *testing.T) {
	dir, truth := readTruth(t, "HAUL_CPU_TRACES")
	right, alarms := 0, 0
	for name, want := range truth.Traces {
		found := findingsOf(t, filepath.Join(dir, name))
		above := slices.DeleteFunc(slices.Clone(found), func(f rule.Finding) bool { return f.Severity == rule.Note })
		switch {
		case len(want.Want) > 0 && len(above) > 0 && slices.Contains(want.Want, above[0].ID), len(want.Want) == 0 && len(above) == 0:
			right++
		default:
			t.Logf("%s: %s, want %v", name, listed(found), want.Want)
			if len(want.Want) == 0 {
				alarms++
			}
		}
	}
	t.Logf("%d of %d right, %d false alarms", right, len(truth.Traces), alarms)
	if float64(right) < 0.95*float64(len(truth.Traces)) || alarms > 0 {
		t.Errorf("%d of %d right, %d false alarms", right, len(truth.Traces), alarms)
	}
}

// Traces of GPU jobs with one known fault each: it is found, and not where it is absent.
func TestGPUTraces(t *testing.T) {
	dir, truth := readTruth(t, "HAUL_GPU_TRACES")
	for name, want := range truth.Traces {
		t.Run(name, func(t *testing.T) {
			found := findingsOf(t, filepath.Join(dir, name))
			var all []string
			ok := len(want.Want) == 0
			fault := truth.Traces[strings.Replace(name, "-good", "-bad", 1)].Want // that this one is without
			for _, f := range found {
				all = append(all, f.ID+" "+string(f.Severity))
				if f.Severity == rule.Note {
					continue
				}
				if slices.Contains(want.Want, f.ID) && (f.Rank == nil || *f.Rank == want.Rank) {
					ok = true
				}
				if len(want.Want) == 0 && (slices.Contains(fault, f.ID) && f.ID != "launch-bound" ||
					slices.Contains([]string{"repeated-work", "dead-graph", "unfused", "fp64", "pageable-copy", "small-batch", "straggler", "anomaly-mode", "slow-product", "copies"}, f.ID)) {
					ok = false
				}
			}
			if t.Logf("%v, want %v", all, want.Want); !ok {
				t.Errorf("%v, want %v", all, want.Want)
			}
		})
	}
}

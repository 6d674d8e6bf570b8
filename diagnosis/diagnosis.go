// Package diagnosis analyses a profiler's trace and reports why a training run is slow. It offers
// haul doctor's analysis to Go programs.
//
//	r, err := diagnosis.Of(ctx, "trace.json.gz")
//	for _, f := range r.Findings { fmt.Println(f.ID, f.SavesMS, f.Remedy) }
//
// It reads the traces of PyTorch, JAX, Nsight Systems (exported as SQLite), rocprofv3 and Haul.
// docs/doctor.md lists the formats and explains every finding.
//
// The package is stable: see docs/go.md for what that means.
package diagnosis

import (
	"context"
	"fmt"
	"io"
	"strings"

	"haul/internal/doctor"
)

// Report is the diagnosis of one trace.
type Report struct {
	GPUBusy  float64   // fraction of the steps' time in which the GPU worked
	StepMS   float64   // duration of the median step
	Steps    int       // steps in the trace
	Verdict  string    // a summary in a sentence or two
	Findings []Finding // causes, costliest first
}

// Finding is one cause of lost time.
type Finding struct {
	ID       string   // such as sync-storm; docs/doctor.md explains each
	Severity string   // critical, warning or note
	Share    float64  // fraction of the step's time
	SavesMS  float64  // upper bound, per step
	Evidence []string // facts in the trace
	Remedy   string   // what to do
	Where    string   // file:line and function, if Python's frames were recorded
}

// Of diagnoses a file with one trace. It does not read archives or folders of several ranks'
// traces, which haul doctor does.
func Of(ctx context.Context, path string) (*Report, error) {
	var report *Report
	err := doctor.Load(ctx, path, func(name string, t *doctor.Trace) error {
		if report != nil {
			return fmt.Errorf("%s holds several traces: diagnose them one by one, or together with haul doctor", path)
		}
		var err error
		if report, err = diagnose(t); err != nil {
			return doctor.InFile(name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if report == nil {
		return nil, fmt.Errorf("%s holds no trace", path)
	}
	return report, nil
}

// Read diagnoses a Chrome trace, uncompressed, from a reader.
func Read(r io.Reader) (*Report, error) {
	t, err := doctor.Read(r)
	if err != nil {
		return nil, err
	}
	return diagnose(t)
}

func diagnose(t *doctor.Trace) (*Report, error) {
	r, err := doctor.Diagnose(t)
	if err != nil {
		return nil, err
	}
	out := &Report{GPUBusy: r.GPUBusyShare, StepMS: r.StepMS, Steps: r.Steps, Verdict: strings.TrimSpace(r.Verdict())}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, Finding{ID: f.ID, Severity: string(f.Severity), Share: f.Share, SavesMS: f.SavesMS,
			Evidence: f.Evidence, Remedy: f.Remedy, Where: f.Where})
	}
	return out, nil
}

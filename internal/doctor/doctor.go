// Package doctor analyses a profiler's trace and reports why a run is slow: how busy the GPU was,
// what it waited for, and the causes ordered by cost. `haul doctor`, the service and package
// diagnosis call it.
//
// It exports the functions of six packages. Each uses only later ones of this list:
//
//   - report writes the diagnosis of one trace, of the ranks of a job, or of the difference of
//     two, as text, JSON or HTML;
//   - rule holds one file per cause, and the table of them;
//   - analysis joins calls, operators and GPU work, determines the steps, and assigns the GPU's
//     idle time to causes;
//   - memory reports the contents of memory snapshots;
//   - trace reads files of all formats into compact records, and contains the vendors' names;
//   - phrase formats numbers for people.
//
// Rules may match vendors' names (cudaMalloc, aten::item, kernel families of the vendors'
// libraries) but never a user's: a trace with its functions, annotations, files and own kernels
// renamed gives the same findings.
package doctor

import (
	"context"
	"io"

	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
	"haul/internal/limits"
)

type (
	// Trace is a recording. Load passes it on, and Diagnose consumes it.
	Trace = trace.Trace
	// Report is the diagnosis of one trace.
	Report = report.Report
	// Ranks is the diagnosis of a job from its ranks' traces.
	Ranks = report.Ranks
	// Diff is the difference of two reports.
	Diff = report.Diff
	// RanksDiff is the difference of two jobs.
	RanksDiff = report.RanksDiff
	// Severity is the importance of a finding.
	Severity = rule.Severity
	// Finding is one cause of lost time.
	Finding = rule.Finding
	// Capture is a graph as recorded during its capture.
	Capture = trace.Capture
	// Text configures how much of a report is written.
	Text = report.Text
)

// The severities, lowest first.
const (
	Note     = rule.Note
	Warning  = rule.Warning
	Critical = rule.Critical
)

// ErrTooLarge reports that a trace unpacks to more than the limit.
var ErrTooLarge = trace.ErrTooLarge

// Read reads a Chrome trace, plain or gzip.
func Read(r io.Reader) (*Trace, error) { return trace.Read(r) }

// ReadFile reads the only trace of a file.
func ReadFile(path string) (*Trace, error) { return trace.ReadFile(path) }

// Load reads every trace of a file and calls each with its name.
func Load(ctx context.Context, path string, each func(name string, t *Trace) error) error {
	return trace.Load(ctx, path, each)
}

// LoadWith loads like Load within the limits and reports its progress in bytes.
func LoadWith(ctx context.Context, path string, most *limits.Set, progress func(done, size int64), each func(name string, t *Trace) error) error {
	return trace.LoadWith(ctx, path, most, progress, each)
}

// LoadReader is Load for what comes from elsewhere than a file; see trace.LoadReader.
func LoadReader(ctx context.Context, name string, r io.Reader, left *trace.Budget, each func(name string, t *Trace) error) error {
	return trace.LoadReader(ctx, name, r, left, each)
}

// NewBudget returns what the traces of an upload may hold.
func NewBudget(bytes int64, l *limits.Set) *trace.Budget { return trace.NewBudget(bytes, l) }

// Expand turns folders into the traces they hold, in the order of their names.
func Expand(paths []string) ([]string, error) { return trace.Expand(paths) }

// IsTrace reports whether a file may be a trace, by its name.
func IsTrace(name string) bool { return trace.IsTrace(name) }

// InFile adds a file's name to an error.
func InFile(name string, err error) error { return trace.InFile(name, err) }

// Captures returns the graphs whose capture is in a recording. It consumes the trace.
func Captures(name string, t *Trace) ([]Capture, error) { return report.Captures(name, t) }

// Diagnose analyses the steps of a trace and finds causes of lost time. It consumes the trace.
func Diagnose(t *Trace) (*Report, error) { return report.Diagnose(t) }

// Together returns an error if the reports cannot be analysed as one job or, with diff, compared.
func Together(reports []*Report, diff bool) error { return report.Together(reports, diff) }

// JoinRanks matches the ranks' collectives and finds the rank that the others wait for.
func JoinRanks(reports []*Report) *Ranks { return report.JoinRanks(reports) }

// Compare computes the difference of two reports.
func Compare(before, after *Report) *Diff { return report.Compare(before, after) }

// CompareRanks computes the difference of two jobs.
func CompareRanks(before, after *Ranks) *RanksDiff { return report.CompareRanks(before, after) }

// PageScript returns the only script of a page, for a server that allows it by its hash.
func PageScript() string { return report.PageScript() }

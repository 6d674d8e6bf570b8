// Package doctor reads a profiler's trace and says why the run is slow: how busy the GPU was, what
// it waited for, and the causes in order of the time they cost.
//
// It is the door to six packages, each of which uses only those after it:
//
//   - report prints: one trace, the ranks of a job, the difference of two, as text, JSON or HTML;
//   - rule holds one file per cause, and the table of them;
//   - analysis joins calls, operators and GPU work, picks the steps, and gives every idle moment of
//     the GPU to one cause;
//   - memory reports what memory snapshots hold;
//   - trace reads files of any packing into compact records, and knows the vendors' names;
//   - phrase writes numbers as people read them.
//
// Rules may know the vendor's names (cudaMalloc, aten::item, kernel families of the vendor's
// libraries) and never a user's: a trace with its functions, annotations, files and own kernels
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
	// Trace is a recording, as Load hands it over and Diagnose consumes it.
	Trace = trace.Trace
	// Report is the diagnosis of one trace.
	Report = report.Report
	// Ranks is the diagnosis of a job from its ranks' traces.
	Ranks = report.Ranks
	// Diff is the difference of two reports, explained.
	Diff = report.Diff
	// RanksDiff is the difference of two jobs, explained.
	RanksDiff = report.RanksDiff
	// Severity is how much a finding matters.
	Severity = rule.Severity
	// Finding is one cause of lost time.
	Finding = rule.Finding
	// Capture is a graph as its capture was recorded.
	Capture = trace.Capture
	// Text is how much of a report is printed.
	Text = report.Text
)

// The severities, the least first.
const (
	Note     = rule.Note
	Warning  = rule.Warning
	Critical = rule.Critical
)

// ErrTooLarge is what reading ends with where a trace unpacks to more than it may.
var ErrTooLarge = trace.ErrTooLarge

// Read reads a Chrome trace, plain or gzip.
func Read(r io.Reader) (*Trace, error) { return trace.Read(r) }

// ReadFile reads the one trace of a file.
func ReadFile(path string) (*Trace, error) { return trace.ReadFile(path) }

// Load reads every trace of a file and hands it over with its name.
func Load(ctx context.Context, path string, each func(name string, t *Trace) error) error {
	return trace.Load(ctx, path, each)
}

// LoadWith is Load within limits that tells how much of the file has been read.
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

// IsTrace tells by its name whether a file may be a trace.
func IsTrace(name string) bool { return trace.IsTrace(name) }

// InFile names the file that an error is about.
func InFile(name string, err error) error { return trace.InFile(name, err) }

// Captures lists the graphs that a recording shows being captured. It consumes the trace.
func Captures(name string, t *Trace) ([]Capture, error) { return report.Captures(name, t) }

// Diagnose measures the steps of a trace and looks for what slows them. It consumes the trace.
func Diagnose(t *Trace) (*Report, error) { return report.Diagnose(t) }

// Together returns an error if the reports cannot be judged as one job, or with diff compared.
func Together(reports []*Report, diff bool) error { return report.Together(reports, diff) }

// JoinRanks matches the ranks' collectives and says who waited for whom.
func JoinRanks(reports []*Report) *Ranks { return report.JoinRanks(reports) }

// Compare explains the difference of two reports.
func Compare(before, after *Report) *Diff { return report.Compare(before, after) }

// CompareRanks explains the difference of two jobs.
func CompareRanks(before, after *Ranks) *RanksDiff { return report.CompareRanks(before, after) }

// PageScript is the one script of a page, for whoever allows it by its hash.
func PageScript() string { return report.PageScript() }

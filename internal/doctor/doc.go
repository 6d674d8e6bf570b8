// Package doctor reads a profiler's trace and says why the run is slow: how busy the GPU was, what
// it waited for, and the causes in order of the time they cost.
//
// The way through the package: Load opens files of any packing and Read turns a Chrome trace into
// compact records (scan.go, event.go, trace.go); Diagnose joins calls to the operators that made
// them and to the GPU work they started (link.go), picks the steps (period.go), gives every idle
// moment of the GPU to one cause (attribute.go) and asks every rule of rules.go. JoinRanks matches
// the reports of a job's ranks, Compare explains the difference of two. All three print themselves
// as text, as JSON or as one HTML file.
//
// A rule is one file rule_*.go and one line in the table of rules.go. Rules may know the vendor's
// names (cudaMalloc, aten::item, kernel families of the vendor's libraries) and never a user's: a
// trace with its functions, annotations, files and own kernels renamed gives the same findings.
package doctor

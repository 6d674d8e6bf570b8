// Package nsys reads the SQLite file that `nsys export --type sqlite` writes, for package trace. It
// reads the tables of GPU work, driver calls, NVTX ranges and GPUs, by their published schema. The
// tables of a file depend on the version of Nsight Systems and on what was traced; only the table
// of kernels or of calls must exist.
package nsys

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"haul/internal/limits"
	"haul/internal/sqlite"
)

// Kind is the kind of a row.
type Kind uint8

// The kinds of rows.
const (
	Kernel Kind = iota
	Copy
	Set
	Call
	Range
)

// Row is one record. Fields that its kind lacks are zero.
type Row struct {
	Kind         Kind
	Start, End   int64 // ns
	Name         string
	Thread       int64
	Correlation  int64
	Device       int64
	Stream       int64
	Bytes        int64
	Blocks       float64
	Direction    string // HtoD, DtoH, DtoD or PtoP
	HostPageable bool
}

// GPU is a GPU of the machine.
type GPU struct {
	Name         string
	Major, Minor int
	Processors   int
}

var errNoTables = errors.New("this SQLite file holds no GPU work and no driver calls of Nsight Systems: export the report with `nsys export --type sqlite`, recorded with --trace=cuda,nvtx")

// Read calls each with every row of a file of size bytes, and returns the GPUs. The file's contents
// count against the limits l; nil stands for the command line's limits.
func Read(r io.ReaderAt, size int64, l *limits.Set, each func(Row)) ([]GPU, error) {
	db, err := sqlite.Open(r, size, l)
	if err != nil {
		return nil, fmt.Errorf("cannot read this SQLite file: %w", err)
	}
	if db.Table(kernelTable) == nil && db.Table(callTable) == nil && db.Table(graphTable) == nil {
		return nil, errNoTables
	}
	f := &file{db: db, names: map[int64]string{}, each: each}
	for _, read := range []func() error{f.strings, f.kernels, f.graphs, f.copies, f.sets, f.calls, f.ranges} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("cannot read this SQLite file: %w", err)
		}
	}
	return f.gpus(), nil
}

const (
	stringTable = "StringIds"
	kernelTable = "CUPTI_ACTIVITY_KIND_KERNEL"
	graphTable  = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
	copyTable   = "CUPTI_ACTIVITY_KIND_MEMCPY"
	setTable    = "CUPTI_ACTIVITY_KIND_MEMSET"
	callTable   = "CUPTI_ACTIVITY_KIND_RUNTIME"
	rangeTable  = "NVTX_EVENTS"
	gpuTable    = "TARGET_INFO_GPU"
)

type file struct {
	db    *sqlite.File
	names map[int64]string // names by their numbers
	each  func(Row)
}

// fields holds the requested columns of a row, in the requested order.
type fields []sqlite.Value

// int returns a number, or otherwise if the version of the export lacks the column.
func (f fields) int(i int, otherwise int64) int64 {
	if n, ok := f[i].Int(); ok {
		return n
	}
	return otherwise
}

// scan reads a table, if it exists. Its first `needed` columns must exist. It skips rows in which
// one of them is null, such as work that never ended.
func (f *file) scan(table string, needed int, columns []string, each func(fields)) error {
	t := f.db.Table(table)
	if t == nil {
		return nil
	}
	for _, c := range columns[:needed] {
		if !t.Has(c) {
			return fmt.Errorf("table %s has no column %s", table, c)
		}
	}
	return t.Scan(columns, func(row []sqlite.Value) error {
		for i, v := range row[:needed] {
			if v.Null() {
				return nil
			}
			if _, ok := v.Int(); !ok {
				return fmt.Errorf("table %s: %s is no whole number in one of its rows", table, columns[i])
			}
		}
		each(row)
		return nil
	})
}

func (f *file) strings() error {
	return f.scan(stringTable, 1, []string{"id", "value"}, func(row fields) {
		f.names[row.int(0, 0)] = string(row[1].Bytes())
	})
}

// name returns the name that a column's number stands for.
func (f *file) name(v sqlite.Value) string {
	id, ok := v.Int()
	if !ok {
		return ""
	}
	return f.names[id]
}

func (f *file) kernels() error {
	columns := []string{"start", "end", "demangledName", "deviceId", "streamId", "correlationId", "gridX", "gridY", "gridZ"}
	return f.scan(kernelTable, 2, columns, func(row fields) {
		f.each(Row{Kind: Kernel, Start: row.int(0, 0), End: row.int(1, 0), Name: f.name(row[2]),
			Device: row.int(3, 0), Stream: row.int(4, 0), Correlation: row.int(5, 0),
			Blocks: float64(row.int(6, 0)) * float64(row.int(7, 1)) * float64(row.int(8, 1))})
	})
}

// WholeGraph begins the name of a CUDA graph that was recorded as one piece of work, the default of
// Nsight Systems (--cuda-graph-trace=graph): its kernels are not in the file.
const WholeGraph = "CUDA graph "

func (f *file) graphs() error {
	columns := []string{"start", "end", "deviceId", "streamId", "correlationId", "graphId"}
	return f.scan(graphTable, 2, columns, func(row fields) {
		f.each(Row{Kind: Kernel, Start: row.int(0, 0), End: row.int(1, 0), Name: WholeGraph + strconv.FormatInt(row.int(5, 0), 10),
			Device: row.int(2, 0), Stream: row.int(3, 0), Correlation: row.int(4, 0), Blocks: -1})
	})
}

// CUPTI's numbers of the kinds of copies and of memory.
var copyKinds = map[int64]string{1: "HtoD", 2: "DtoH", 3: "HtoD", 4: "DtoH", 8: "DtoD", 10: "PtoP"}

const (
	pageableKind = 0
	deviceKind   = 2
)

func (f *file) copies() error {
	columns := []string{"start", "end", "deviceId", "streamId", "correlationId", "bytes", "copyKind", "srcKind", "dstKind"}
	return f.scan(copyTable, 2, columns, func(row fields) {
		direction := copyKinds[row.int(6, 0)]
		f.each(Row{Kind: Copy, Start: row.int(0, 0), End: row.int(1, 0), Device: row.int(2, 0), Stream: row.int(3, 0),
			Correlation: row.int(4, 0), Bytes: row.int(5, 0), Direction: direction,
			HostPageable: direction == "HtoD" && row.int(7, deviceKind) == pageableKind || direction == "DtoH" && row.int(8, deviceKind) == pageableKind})
	})
}

func (f *file) sets() error {
	return f.scan(setTable, 2, []string{"start", "end", "deviceId", "streamId", "correlationId", "bytes"}, func(row fields) {
		f.each(Row{Kind: Set, Start: row.int(0, 0), End: row.int(1, 0), Device: row.int(2, 0), Stream: row.int(3, 0),
			Correlation: row.int(4, 0), Bytes: row.int(5, 0)})
	})
}

// span is a row of a thread that waits to be emitted in order: by start, with enclosing rows first.
type span struct {
	start, end, thread, correlation int64
	name                            string
}

func (f *file) inOrder(kind Kind, list []span) {
	slices.SortStableFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	for _, s := range list {
		f.each(Row{Kind: kind, Start: s.start, End: s.end, Name: s.name, Thread: s.thread, Correlation: s.correlation})
	}
}

func (f *file) calls() error {
	var list []span
	plainName := map[int64]string{}
	err := f.scan(callTable, 2, []string{"start", "end", "nameId", "globalTid", "correlationId"}, func(row fields) {
		id := row.int(2, -1)
		name, ok := plainName[id]
		if !ok {
			name = plain(f.name(row[2]))
			plainName[id] = name
		}
		list = append(list, span{row.int(0, 0), row.int(1, 0), row.int(3, 0), row.int(4, 0), name})
	})
	f.inOrder(Call, list)
	return err
}

// plain removes the version from a call's name: cudaLaunchKernel_v7000, cuMemcpyAsync_ptsz.
func plain(s string) string {
	for {
		i := strings.LastIndexByte(s, '_')
		if i < 0 {
			return s
		}
		end := s[i+1:]
		if end != "ptsz" && end != "ptds" && (len(end) < 2 || end[0] != 'v' || strings.Trim(end[1:], "0123456789") != "") {
			return s
		}
		s = s[:i]
	}
}

func (f *file) ranges() error {
	var list []span
	labels := map[string]string{} // one string for all ranges with the same name
	err := f.scan(rangeTable, 1, []string{"start", "end", "textId", "globalTid", "text"}, func(row fields) {
		s := span{start: row.int(0, 0), end: row.int(1, 0), thread: row.int(3, 0)}
		if row[1].Null() || s.end <= s.start {
			return // a mark, or a range that was not closed
		}
		label, known := labels[string(row[4].Bytes())]
		switch {
		case len(row[4].Bytes()) == 0:
			label = f.name(row[2])
		case !known:
			label = string(row[4].Bytes())
			labels[label] = label
		}
		s.name = label
		list = append(list, s)
	})
	f.inOrder(Range, list)
	return err
}

func (f *file) gpus() []GPU {
	var out []GPU
	// The list of GPUs is optional: it only makes advice more specific.
	_ = f.scan(gpuTable, 0, []string{"name", "computeMajor", "computeMinor", "smCount"}, func(row fields) {
		out = append(out, GPU{string(row[0].Bytes()), int(row.int(1, 0)), int(row.int(2, 0)), int(row.int(3, 0))})
	})
	return out
}

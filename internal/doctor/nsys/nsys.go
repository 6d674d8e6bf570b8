// Package nsys reads the SQLite file that `nsys export --type sqlite` writes: the tables of GPU work, of
// driver calls, of NVTX ranges and of the cards, by their published schema. Tables come and go with the
// version of Nsight Systems and with what was traced; only the table of kernels or of calls must exist.
package nsys

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver, in Go alone
)

// Kind is what a row becomes.
type Kind uint8

// The kinds of rows.
const (
	Kernel Kind = iota
	Copy
	Set
	Call
	Range
)

// Row is one record; fields that its kind has not are zero.
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

// Card is a GPU of the machine.
type Card struct {
	Name         string
	Major, Minor int
	Processors   int
}

var errNoTables = errors.New("this SQLite file holds no GPU work and no driver calls of Nsight Systems: export the report with `nsys export --type sqlite`, recorded with --trace=cuda,nvtx")

// Read hands over every row of the file at path, and the cards.
func Read(path string, each func(Row)) ([]Card, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&immutable=1")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	f := &file{db: db, tables: map[string][]string{}, each: each}
	if err := f.schema(); err != nil {
		return nil, fmt.Errorf("cannot read this SQLite file: %w", err)
	}
	if f.tables["CUPTI_ACTIVITY_KIND_KERNEL"] == nil && f.tables["CUPTI_ACTIVITY_KIND_RUNTIME"] == nil {
		return nil, errNoTables
	}
	for _, read := range []func() error{f.kernels, f.copies, f.sets, f.calls, f.ranges} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("cannot read this SQLite file: %w", err)
		}
	}
	return f.cards(), nil
}

type file struct {
	db     *sql.DB
	tables map[string][]string // columns by table
	each   func(Row)
}

func (f *file) schema() error {
	rows, err := f.db.Query(`SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return err
		}
		f.tables[table] = append(f.tables[table], column)
	}
	return rows.Err()
}

// column is a column's name where the table has it, or a constant in its place.
func (f *file) column(table, name, otherwise string) string {
	if slices.Contains(f.tables[table], name) {
		return "t." + name
	}
	return otherwise
}

// query runs over a table, where it exists, with the columns that it has.
func (f *file) query(table string, columns []string, join string, scan func(*sql.Rows) error) error {
	if f.tables[table] == nil {
		return nil
	}
	rows, err := f.db.Query("SELECT " + strings.Join(columns, ", ") + " FROM " + table + " t " + join)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// name joins a column of numbers with the strings they stand for.
func (f *file) name(table, column string) (expression, join string) {
	if f.tables["StringIds"] == nil || !slices.Contains(f.tables[table], column) {
		return "''", ""
	}
	return "COALESCE(s.value, '')", "LEFT JOIN StringIds s ON s.id = t." + column
}

func (f *file) kernels() error {
	const t = "CUPTI_ACTIVITY_KIND_KERNEL"
	name, join := f.name(t, "demangledName")
	columns := []string{"t.start", "t.end", name, f.column(t, "deviceId", "0"), f.column(t, "streamId", "0"), f.column(t, "correlationId", "0"),
		fmt.Sprintf("1.0*%s*%s*%s", f.column(t, "gridX", "0"), f.column(t, "gridY", "1"), f.column(t, "gridZ", "1"))}
	return f.query(t, columns, join, func(rows *sql.Rows) error {
		r := Row{Kind: Kernel}
		if err := rows.Scan(&r.Start, &r.End, &r.Name, &r.Device, &r.Stream, &r.Correlation, &r.Blocks); err != nil {
			return err
		}
		f.each(r)
		return nil
	})
}

// The numbers of CUPTI's kinds of copies and of memory.
var (
	copyKinds    = map[int64]string{1: "HtoD", 2: "DtoH", 3: "HtoD", 4: "DtoH", 8: "DtoD", 10: "PtoP"}
	pageableKind = int64(0)
)

func (f *file) copies() error {
	const t = "CUPTI_ACTIVITY_KIND_MEMCPY"
	columns := []string{"t.start", "t.end", f.column(t, "deviceId", "0"), f.column(t, "streamId", "0"), f.column(t, "correlationId", "0"),
		f.column(t, "bytes", "0"), f.column(t, "copyKind", "0"), f.column(t, "srcKind", "2"), f.column(t, "dstKind", "2")}
	return f.query(t, columns, "", func(rows *sql.Rows) error {
		r := Row{Kind: Copy}
		var kind, src, dst int64
		if err := rows.Scan(&r.Start, &r.End, &r.Device, &r.Stream, &r.Correlation, &r.Bytes, &kind, &src, &dst); err != nil {
			return err
		}
		r.Direction = copyKinds[kind]
		r.HostPageable = r.Direction == "HtoD" && src == pageableKind || r.Direction == "DtoH" && dst == pageableKind
		f.each(r)
		return nil
	})
}

func (f *file) sets() error {
	const t = "CUPTI_ACTIVITY_KIND_MEMSET"
	columns := []string{"t.start", "t.end", f.column(t, "deviceId", "0"), f.column(t, "streamId", "0"), f.column(t, "correlationId", "0"), f.column(t, "bytes", "0")}
	return f.query(t, columns, "", func(rows *sql.Rows) error {
		r := Row{Kind: Set}
		if err := rows.Scan(&r.Start, &r.End, &r.Device, &r.Stream, &r.Correlation, &r.Bytes); err != nil {
			return err
		}
		f.each(r)
		return nil
	})
}

func (f *file) calls() error {
	const t = "CUPTI_ACTIVITY_KIND_RUNTIME"
	name, join := f.name(t, "nameId")
	columns := []string{"t.start", "t.end", name, f.column(t, "globalTid", "0"), f.column(t, "correlationId", "0")}
	return f.query(t, columns, join+" ORDER BY t.start", func(rows *sql.Rows) error {
		r := Row{Kind: Call}
		if err := rows.Scan(&r.Start, &r.End, &r.Name, &r.Thread, &r.Correlation); err != nil {
			return err
		}
		r.Name = plain(r.Name)
		f.each(r)
		return nil
	})
}

// plain takes the version off a call's name: cudaLaunchKernel_v7000, cuMemcpyAsync_ptsz.
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
	const t = "NVTX_EVENTS"
	name, join := f.name(t, "textId")
	text := f.column(t, "text", "''")
	columns := []string{"t.start", "COALESCE(t.end, t.start)", fmt.Sprintf("COALESCE(NULLIF(%s, ''), %s)", text, name), f.column(t, "globalTid", "0")}
	return f.query(t, columns, join+" ORDER BY t.start, t.end DESC", func(rows *sql.Rows) error {
		r := Row{Kind: Range}
		var label sql.NullString
		var start, end, thread sql.NullInt64
		if err := rows.Scan(&start, &end, &label, &thread); err != nil {
			return err
		}
		if !start.Valid || end.Int64 <= start.Int64 {
			return nil
		}
		r.Start, r.End, r.Thread, r.Name = start.Int64, end.Int64, thread.Int64, label.String
		f.each(r)
		return nil
	})
}

func (f *file) cards() []Card {
	const t = "TARGET_INFO_GPU"
	var out []Card
	columns := []string{f.column(t, "name", "''"), f.column(t, "computeMajor", "0"), f.column(t, "computeMinor", "0"), f.column(t, "smCount", "0")}
	// A file without cards is read all the same: they only sharpen the advice.
	_ = f.query(t, columns, "", func(rows *sql.Rows) error {
		var c Card
		if err := rows.Scan(&c.Name, &c.Major, &c.Minor, &c.Processors); err != nil {
			return err
		}
		out = append(out, c)
		return nil
	})
	return out
}

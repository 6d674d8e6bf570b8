package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"haul/internal/limits"
	"haul/internal/limits/limitstest"
	"haul/internal/sqlite/sqlitetest"
)

func open(data []byte) (*File, error) { return Open(bytes.NewReader(data), int64(len(data)), nil) }

// rows prints every row of a table.
func rows(t testing.TB, data []byte, table string, columns ...string) []string {
	t.Helper()
	f, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	if err := f.Table(table).Scan(columns, func(row []Value) error {
		out = append(out, show(row))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func show(row []Value) string {
	var b strings.Builder
	for _, v := range row {
		switch n, ok := v.Int(); {
		case v.Null():
			b.WriteString("null ")
		case ok:
			fmt.Fprintf(&b, "%d ", n)
		case v.kind == float:
			fmt.Fprintf(&b, "%g ", math.Float64frombits(uint64(v.number)))
		default:
			fmt.Fprintf(&b, "%q ", v.Bytes())
		}
	}
	return strings.TrimSpace(b.String())
}

func TestSerialTypes(t *testing.T) {
	var list [][]any
	var want []string
	for _, v := range []int{0, 1, -1, 2, 127, 128, -128, -129, 32767, 32768, -32768, 1 << 23, -1<<23 - 1, 1<<31 - 1, 1 << 31, -1 << 31, 1 << 47, -1 << 47, 1<<47 - 1, math.MaxInt64, math.MinInt64} {
		list, want = append(list, []any{v, "x"}), append(want, fmt.Sprintf("%d %q", v, "x"))
	}
	list = append(list, []any{1.5, "é"}, []any{3.0, nil}, []any{nil, []byte{0, 255}}, []any{math.Inf(1), ""}, []any{1e300, 9}, []any{7}, []any{})
	want = append(want, `1.5 "é"`, `3 null`, `null "\x00\xff"`, `+Inf ""`, `1e+300 9`, `7 null`, `null null`)
	data := sqlitetest.File(4096, sqlitetest.Table{SQL: "CREATE TABLE t (a, b)", Rows: list})
	if got := rows(t, data, "t", "a", "b"); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := rows(t, data, "t", "b", "none", "a"); got[3] != `"x" null 2` {
		t.Errorf("%q", got[3])
	}
}

// Leaves, inner pages on several levels, rows that go on in other pages, a schema larger than its
// page.
func TestPages(t *testing.T) {
	for _, size := range []int{512, 1024, 4096, 65536} {
		var list [][]any
		var want []string
		add := func(id int, s string) {
			list, want = append(list, []any{sqlitetest.RowID(id), s, id}), append(want, fmt.Sprintf("%d %q %d", id, s, id))
		}
		for i := range 3000 {
			add(3*i-500, strings.Repeat("v", i%50))
		}
		for i := range 40 { // around the limits of what a leaf holds, and far past them
			add(20_000+i, strings.Repeat("w", size-60+i))
			add(30_000*1000+i, strings.Repeat("x", size*(i%4)+i))
		}
		slices.SortFunc(list, func(a, b []any) int { return a[2].(int) - b[2].(int) })
		tables := []sqlitetest.Table{{SQL: "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT, n INT)", Rows: list}}
		for i := range 30 {
			tables = append(tables, sqlitetest.Table{SQL: fmt.Sprintf("CREATE TABLE other%d (%s)", i, strings.Repeat("some_column INTEGER, ", i)+"last TEXT"), Rows: [][]any{{i}}})
		}
		data := sqlitetest.File(size, tables...)
		got := rows(t, data, "t", "id", "s", "n")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %d rows, want %d", size, len(got), len(want))
		}
		if got := rows(t, data, "other29", "some_column"); !slices.Equal(got, []string{"29"}) {
			t.Errorf("pages of %d: other29 holds %v", size, got)
		}
	}
}

// A file that SQLite wrote (scripts/nsys_fixture.py): names of kilobytes, comments in the schema,
// free pages.
func TestFileBySQLite(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "doctor", "testdata", "nsys.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprintf("%d %q", 100+i, "void elementwise<"+strings.Repeat("λ, ", 97*i)+">"))
	}
	if got := rows(t, data, "StringIds", "id", "value"); len(got) != 17 || !slices.Equal(got[5:], want) {
		t.Errorf("%d strings: %q", len(got), got)
	}
	f, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.Table("CUPTI_ACTIVITY_KIND_RUNTIME").Columns, " "); got != "start end eventClass globalTid correlationId nameId returnValue" {
		t.Error(got)
	}
	if got := rows(t, data, "CUPTI_ACTIVITY_KIND_RUNTIME", "start"); len(got) != 52 {
		t.Errorf("%d calls", len(got))
	}
}

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		sql   string
		want  string
		rowID int
	}{
		{"CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)", "a b", 0},
		{"CREATE TABLE t(a,b)", "a b", -1},
		{"CREATE TABLE t (a INT PRIMARY KEY, b INTEGER NOT NULL)", "a b", -1},
		{"CREATE TABLE t (a TEXT, b INTEGER  NOT NULL   PRIMARY KEY)", "a b", 1},
		{"CREATE TABLE t (a TEXT, b integer, CONSTRAINT k primary key (B))", "a b", 1},
		{"CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (a, b))", "a b", -1},
		{"CREATE TABLE t (a UNSIGNED BIG INTEGER PRIMARY KEY, b INTEGER(8) PRIMARY KEY)", "a b", -1},
		{"CREATE TABLE t (\n  start INTEGER NOT NULL, -- Start, in ns (of the session).\n  end INTEGER, /* the end, or\nnull */\n  text TEXT\n)", "start end text", -1},
		{"CREATE TABLE \"a (b\" (\"x, y\" INT, [primary] INT, `c``d` INT, 'check' INT)", "x, y|primary|c`d|check", -1},
		{"CREATE TABLE t (a DECIMAL(10, 2) DEFAULT (1 + (2)), b TEXT DEFAULT 'x,)', c INT REFERENCES ENUM_X(id), UNIQUE (a, b), CHECK (a > 1), FOREIGN KEY (c) REFERENCES u(v))", "a b c", -1},
		{"CREATE TABLE t (a, b AS (a + 1), c INT GENERATED ALWAYS AS (a) STORED, d GENERATED ALWAYS AS (a) VIRTUAL, e)", "a c e", -1},
		{"CREATE TABLE t (a, b) STRICT", "a b", -1},
		{"CREATE TABLE t (a, 'b", "a", -1},
		{"CREATE TABLE t", "", -1},
		{"", "", -1},
	} {
		names, rowID := columns(c.sql)
		sep := " "
		if strings.Contains(c.want, "|") {
			sep = "|"
		}
		if got := strings.Join(names, sep); got != c.want || rowID != c.rowID {
			t.Errorf("%s\n%q, %d, want %q, %d", c.sql, got, rowID, c.want, c.rowID)
		}
	}
}

func wordsFile() []byte {
	var list [][]any
	for i := range 60 {
		list = append(list, []any{i, strings.Repeat("word ", i%9)})
	}
	list = append(list, []any{60, strings.Repeat("long ", 500)})
	return sqlitetest.File(512, sqlitetest.Table{SQL: "CREATE TABLE t (a INT, b TEXT)", Rows: list})
}

func scanAll(data []byte) (n int, err error) {
	f, err := open(data)
	if err != nil {
		return 0, err
	}
	for _, t := range f.tables {
		err = t.Scan(append([]string{"b", "a"}, t.Columns...), func([]Value) error { n++; return nil })
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// What is wrong with a file is said in one line.
func TestDamage(t *testing.T) {
	whole := wordsFile()
	// The table's root is the second page: an inner one, whose cells lead to leaves.
	root := 512
	firstCell := root + int(binary.BigEndian.Uint16(whole[root+12:]))
	leaf := 512 * (int(binary.BigEndian.Uint32(whole[firstCell:])) - 1)
	leafCell := leaf + int(binary.BigEndian.Uint16(whole[leaf+8:]))
	put := func(at int, b ...byte) func([]byte) []byte {
		return func(d []byte) []byte { copy(d[at:], b); return d }
	}
	for _, c := range []struct {
		name, want string
		change     func([]byte) []byte
	}{
		{"empty", "cut off: it has 0 bytes", func(d []byte) []byte { return nil }},
		{"header", "cut off: it has 99 bytes", func(d []byte) []byte { return d[:99] }},
		{"half", "cut off: it has", func(d []byte) []byte { return d[:len(d)/2] }},
		{"one byte short", "cut off: it has", func(d []byte) []byte { return d[:len(d)-1] }},
		{"foreign", "does not begin as", put(0, 'P')},
		{"page size", "header is damaged", put(16, 0, 17)},
		{"fractions", "header is damaged", put(21, 63)},
		{"reserved", "header is damaged", put(20, 40)},
		{"later format", "later format", put(19, 3)},
		{"UTF-16", "UTF-16", put(56, 0, 0, 0, 2)},
		{"a cycle", "page 2, which is in use", put(firstCell, 0, 0, 0, 2)},
		{"a page past the end", "leads to page 16777215 of", put(firstCell, 0, 255, 255, 255)},
		{"page zero", "leads to page 0 of", put(firstCell, 0, 0, 0, 0)},
		{"the same leaf twice", "in use elsewhere", func(d []byte) []byte {
			second := root + int(binary.BigEndian.Uint16(d[root+14:]))
			copy(d[second:second+4], d[firstCell:])
			return d
		}},
		{"no page of a table", "no page of a table", put(leaf, 77)},
		{"an index", "WITHOUT ROWID", put(leaf, 10)},
		{"too many cells", "do not fit", put(leaf+3, 255, 255)},
		{"a cell outside", "lies outside", put(leaf+8, 255, 255)},
		{"a row that leaves its page", "leaves its page", put(leafCell, 0xff, 0xff, 0x7f)},
		{"a cell without an end", "a cell is cut off", put(leafCell, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)},
		{"fields past the row", "fields do not fit", put(leafCell+3, 9, 127)},
		{"a reserved type", "fields do not fit", put(leafCell+3, 10)},
		{"cells upon one another", "upon one another", func(d []byte) []byte {
			n := int(binary.BigEndian.Uint16(d[leaf+3:]))
			at := leafCell // the longest
			for i := range n {
				if c := leaf + int(binary.BigEndian.Uint16(d[leaf+8+2*i:])); d[c] > d[at] {
					at = c
				}
			}
			for i := range n {
				binary.BigEndian.PutUint16(d[leaf+8+2*i:], uint16(at-leaf))
			}
			return d
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := scanAll(c.change(bytes.Clone(whole)))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if n, err := scanAll(whole); n != 61 || err != nil {
		t.Errorf("the whole file: %d rows, %v", n, err)
	}
	// A count that an old writer left stale gives way to the file's size.
	stale := bytes.Clone(whole)
	binary.BigEndian.PutUint32(stale[28:], 1)
	binary.BigEndian.PutUint32(stale[92:], 7)
	if n, err := scanAll(stale); n != 61 || err != nil {
		t.Errorf("a stale count: %d rows, %v", n, err)
	}
}

// Any single byte may be wrong: an error or other rows come of it, never a panic.
func TestEveryByteWrong(t *testing.T) {
	whole := wordsFile()
	for i := range whole {
		was := whole[i]
		for _, b := range []byte{0, was ^ 0x80, 0xff} {
			whole[i] = b
			_, _ = scanAll(whole)
		}
		whole[i] = was
	}
}

// A row that claims more than the file has costs no memory.
func TestMemoryOfClaims(t *testing.T) {
	data := sqlitetest.File(65536, sqlitetest.Table{SQL: "CREATE TABLE t (a INT, b TEXT)", Rows: [][]any{{1, strings.Repeat("x", 200_000)}}})
	root := 65536
	at := root + int(binary.BigEndian.Uint16(data[root+8:]))
	if data[at]&0x80 == 0 || data[at+1]&0x80 == 0 {
		t.Fatal("the length does not have three bytes")
	}
	copy(data[at:], []byte{0xff, 0xff, 0x7f}) // 2 MB; the chain has 200 kB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := scanAll(data)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "claims 2097151 bytes") {
		t.Errorf("got %v", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes were allocated for a file of %d", got, len(data))
	}
}

func FuzzSQLite(f *testing.F) {
	f.Add(wordsFile())
	f.Add(sqlitetest.File(512, sqlitetest.Table{SQL: "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)", Rows: [][]any{{sqlitetest.RowID(5), "x"}, {sqlitetest.RowID(9), 1.5}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			if len(data) > 1<<16 {
				return
			}
			n, err := scanAll(data)
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
			if n > 200*len(data) {
				t.Errorf("%d rows of %d bytes", n, len(data))
			}
		}, data)
	})
}

// TestTablesAreLimited: as many tables and fields as the limits allow are read; one more and a
// thousand times as many are refused at the first one past the limit.
func TestTablesAreLimited(t *testing.T) {
	for _, service := range []bool{false, true} {
		l, flag := limits.ForCommand(), "--set "
		if service {
			l, flag = limits.ForService(), "haul serve --limit "
		}
		if err := l.Raise([]string{"tables=16", "fields=200"}); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{16, 17, 16_000} {
			// A file has five fields and a row per table in the table of tables.
			l := *l
			if err := l.Raise([]string{"fields=100000"}); err != nil {
				t.Fatal(err)
			}
			tables := make([]sqlitetest.Table, n)
			for i := range tables {
				tables[i].SQL = fmt.Sprintf("CREATE TABLE t%d (a)", i)
			}
			data := sqlitetest.File(512, tables...)
			f, err := Open(bytes.NewReader(data), int64(len(data)), &l)
			refused(t, err, n > 16, limits.Tables, flag+"tables=N")
			if len(f.tables) > 17 {
				t.Errorf("%d tables are held", len(f.tables))
			}
		}
		const schema, each = 6, 3 // fields: a row's own, and one per column
		for _, n := range []int{(200 - schema) / each, (200-schema)/each + 1, 200_000 / each} {
			rows := make([][]any, n)
			for i := range rows {
				rows[i] = []any{1, 2}
			}
			data := sqlitetest.File(512, sqlitetest.Table{SQL: "CREATE TABLE t (a, b)", Rows: rows})
			f, err := Open(bytes.NewReader(data), int64(len(data)), l)
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			err = f.Table("t").Scan([]string{"a", "b"}, func([]Value) error { seen++; return nil })
			refused(t, err, n*each > 200-schema, limits.Fields, flag+"fields=N")
			if seen > (200-schema)/each {
				t.Errorf("%d rows of %d were handed over", seen, n)
			}
		}
	}
}

// refused compares an error with the limit that it must name, in one line with its flag.
func refused(t *testing.T, err error, over bool, name limits.Name, flag string) {
	t.Helper()
	var is *limits.Error
	if errors.As(err, &is) != over || (err != nil) != over || over && (is.Limit != name || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), flag)) {
		t.Errorf("%v, want a refusal: %v", err, over)
	}
}

func BenchmarkScan(b *testing.B) {
	var list [][]any
	for i := range 100_000 {
		list = append(list, []any{1_700_000_000_000 + 900*i, 1_700_000_000_500 + 900*i, 0, 1, 7, i, 0, 2, 2, 33, 1, 1})
	}
	data := sqlitetest.File(4096, sqlitetest.Table{SQL: "CREATE TABLE t (a, b, c, d, e, f, g, h, i, j, k, l)", Rows: list})
	f, err := open(data)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Table("t").Scan([]string{"a", "b", "h", "l"}, func([]Value) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

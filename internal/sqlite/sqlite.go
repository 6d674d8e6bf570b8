// Package sqlite reads tables out of SQLite's file format
// (https://www.sqlite.org/fileformat2.html), and nothing more: no SQL, no indices, no writing.
// Nothing in a file is trusted: a page number, a length and an offset are checked before they are
// used, a page serves once per walk, so that neither a cycle nor a page that many rows share makes
// a small file long, and memory stays within what the file itself holds.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"haul/internal/limits"
)

// Magic is how every SQLite file begins.
const Magic = "SQLite format 3\x00"

const headerSize = 100

// File is an SQLite file that is not written to while it is read.
type File struct {
	r      io.ReaderAt
	size   int    // of a page
	usable int    // of a page, less what is kept for extensions
	pages  uint32 // numbered from 1
	tables map[string]*Table
	limits *limits.Set
	fields int64 // of all rows that were read
}

// Open reads the header and the names of tables and columns of a file of so many bytes. Its tables
// and the fields of the rows that are read are counted against l; nil: the command line's limits.
func Open(r io.ReaderAt, bytes int64, l *limits.Set) (*File, error) {
	var head [headerSize]byte
	if bytes < headerSize {
		return nil, fmt.Errorf("it is cut off: it has %d bytes", bytes)
	}
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, headerSize), head[:]); err != nil {
		return nil, err
	}
	if string(head[:len(Magic)]) != Magic {
		return nil, errors.New("it does not begin as SQLite files do")
	}
	f := &File{r: r, size: int(binary.BigEndian.Uint16(head[16:])), tables: map[string]*Table{}, limits: l}
	if f.size == 1 {
		f.size = 1 << 16
	}
	f.usable = f.size - int(head[20])
	if f.size < 512 || f.size&(f.size-1) != 0 || f.usable < 480 || head[21] != 64 || head[22] != 32 || head[23] != 32 {
		return nil, errors.New("its header is damaged")
	}
	if head[19] > 2 || binary.BigEndian.Uint32(head[44:]) > 4 {
		return nil, errors.New("it is of a later format than this program knows")
	}
	if text := binary.BigEndian.Uint32(head[56:]); text > 1 {
		return nil, errors.New("its text is UTF-16, and only UTF-8 is read")
	}
	whole := min(bytes/int64(f.size), 1<<32-2)
	f.pages = uint32(whole)
	// Old writers leave a stale count, which does not bear the number of the last change.
	if n := binary.BigEndian.Uint32(head[28:]); n != 0 && string(head[24:28]) == string(head[92:96]) {
		if int64(n) > whole {
			return nil, fmt.Errorf("it is cut off: it has %d bytes of %d", bytes, int64(n)*int64(f.size))
		}
		f.pages = n
	}
	if f.pages == 0 {
		return nil, fmt.Errorf("it is cut off: it has %d bytes", bytes)
	}
	return f, f.schema()
}

// Table is the table of this name, or nil where there is none.
func (f *File) Table(name string) *Table { return f.tables[name] }

// schema reads the table of tables, whose root is the first page.
func (f *File) schema() error {
	self := &Table{Name: "sqlite_schema", Columns: []string{"type", "name", "tbl_name", "rootpage", "sql"}, file: f, root: 1, rowID: -1}
	return self.Scan([]string{"type", "name", "rootpage", "sql"}, func(row []Value) error {
		root, _ := row[2].Int()
		if string(row[0].Bytes()) != "table" || root <= 0 || root > int64(f.pages) {
			return nil // an index, a view, a virtual table; or lost, and missed only by who asks for it
		}
		t := &Table{Name: string(row[1].Bytes()), file: f, root: uint32(root)}
		t.Columns, t.rowID = columns(string(row[3].Bytes()))
		f.tables[t.Name] = t
		if int64(len(f.tables)) > f.limits.Most(limits.Tables) {
			return f.limits.Beyond(limits.Tables)
		}
		return nil
	})
}

// page reads a page.
func (f *File) page(buffer []byte, number uint32) error {
	n, err := f.r.ReadAt(buffer[:f.size], int64(number-1)*int64(f.size))
	if n == f.size {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

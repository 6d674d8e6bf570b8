package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Table is a table of a file, with the columns that are stored, in their order.
type Table struct {
	Name    string
	Columns []string

	file  *File
	root  uint32
	rowID int // the column that stands for the row's number, or -1
}

// Has tells whether the table has the column.
func (t *Table) Has(column string) bool { return slices.Contains(t.Columns, column) }

const (
	kindInner = 5
	kindLeaf  = 13

	// maxDepth is SQLite's own limit of a tree; a page per level is held.
	maxDepth = 20
	// maxRecord bounds the row that is gathered from several pages.
	maxRecord = 64 << 20
)

// Scan hands over every row in the order of the rows' numbers. A column that the table lacks is
// null. The row and its bytes are the caller's until it returns.
func (t *Table) Scan(columns []string, each func(row []Value) error) error {
	w := &walk{table: t, f: t.file, each: each, row: make([]Value, len(columns)), used: make([]uint64, t.file.pages/64+1)}
	for i, c := range columns {
		if at := slices.Index(t.Columns, c); at >= 0 {
			for len(w.slot) <= at {
				w.slot = append(w.slot, -1)
			}
			w.slot[at] = i
		}
	}
	return w.descend(t.root, t.root, 0)
}

// walk is one way through a table's tree.
type walk struct {
	table  *Table
	f      *File
	each   func([]Value) error
	slot   []int    // by column: its place in the row, or -1
	used   []uint64 // a bit per page
	row    []Value
	levels [maxDepth][]byte
	link   []byte // a page of a row that goes on
	record []byte // such a row
}

func (w *walk) damaged(page uint32, format string, args ...any) error {
	return fmt.Errorf("it is damaged: table %q, page %d: %s", w.table.Name, page, fmt.Sprintf(format, args...))
}

// take reads a page that the walk has not used.
func (w *walk) take(buffer *[]byte, page, from uint32) error {
	if page == 0 || page > w.f.pages {
		return w.damaged(from, "it leads to page %d of %d", page, w.f.pages)
	}
	if w.used[page/64]&(1<<(page%64)) != 0 {
		return w.damaged(from, "it leads to page %d, which is in use elsewhere", page)
	}
	w.used[page/64] |= 1 << (page % 64)
	if *buffer == nil {
		*buffer = make([]byte, w.f.size)
	}
	if err := w.f.page(*buffer, page); err != nil {
		return fmt.Errorf("table %q, page %d: %w", w.table.Name, page, err)
	}
	return nil
}

// descend hands over the rows at and below a page, in a depth-first way.
func (w *walk) descend(page, from uint32, depth int) error {
	if depth == maxDepth {
		return w.damaged(page, "the tree is more than %d pages deep", maxDepth)
	}
	if err := w.take(&w.levels[depth], page, from); err != nil {
		return err
	}
	data := w.levels[depth][:w.f.usable]
	head := data
	if page == 1 {
		head = data[headerSize:]
	}
	kind := head[0]
	count := int(binary.BigEndian.Uint16(head[3:]))
	first := 8
	switch kind {
	case kindInner:
		first = 12
	case kindLeaf:
	case 2, 10:
		return fmt.Errorf("table %q is kept as an index (WITHOUT ROWID), which is not read", w.table.Name)
	default:
		return w.damaged(page, "it is no page of a table")
	}
	if first+2*count > len(head) {
		return w.damaged(page, "%d cells do not fit", count)
	}
	room := len(head) - first - 2*count // for cells, which lie apart from one another
	for i := range count {
		at := int(binary.BigEndian.Uint16(head[first+2*i:]))
		if at >= len(data) {
			return w.damaged(page, "cell %d lies outside", i)
		}
		var n int
		var err error
		if kind == kindLeaf {
			n, err = w.leaf(page, data[at:])
		} else {
			n, err = w.inner(page, data[at:], depth)
		}
		if err != nil {
			return err
		}
		if room -= n; room < 0 {
			return w.damaged(page, "cells lie upon one another")
		}
	}
	if kind == kindInner {
		return w.descend(binary.BigEndian.Uint32(head[8:]), page, depth+1)
	}
	return nil
}

// inner follows a cell of an inner page and tells its length.
func (w *walk) inner(page uint32, cell []byte, depth int) (int, error) {
	if len(cell) < 5 {
		return 0, w.damaged(page, "a cell is cut off")
	}
	_, n := varint(cell[4:])
	if n == 0 {
		return 0, w.damaged(page, "a cell is cut off")
	}
	return 4 + n, w.descend(binary.BigEndian.Uint32(cell), page, depth+1)
}

// leaf hands over the row of a cell and tells the cell's length.
func (w *walk) leaf(page uint32, cell []byte) (int, error) {
	length, n := varint(cell)
	id, m := varint(cell[n:])
	if n == 0 || m == 0 {
		return 0, w.damaged(page, "a cell is cut off")
	}
	local, whole := w.local(length)
	end := n + m + local
	if !whole {
		end += 4
	}
	if end > len(cell) {
		return 0, w.damaged(page, "a row leaves its page")
	}
	record := cell[n+m : n+m+local]
	if !whole {
		var err error
		if record, err = w.gather(page, record, length, binary.BigEndian.Uint32(cell[end-4:])); err != nil {
			return 0, err
		}
	}
	if err := w.values(record, int64(id)); err != nil {
		if errors.Is(err, errRecord) {
			return 0, w.damaged(page, "row %d: %v", int64(id), err)
		}
		return 0, err
	}
	return end, nil
}

// local is how much of a row of so many bytes lies in its leaf, by the format's rule.
func (w *walk) local(length uint64) (n int, whole bool) {
	u := uint64(w.f.usable)
	if length <= u-35 {
		return int(length), true
	}
	least := (u-12)*32/255 - 23
	if k := least + (length-least)%(u-4); k <= u-35 {
		return int(k), false
	}
	return int(least), false
}

// gather joins a row that goes on in a chain of pages.
func (w *walk) gather(page uint32, start []byte, length uint64, next uint32) ([]byte, error) {
	if length > maxRecord || length > uint64(w.f.pages)*uint64(w.f.usable) {
		return nil, w.damaged(page, "a row claims %d bytes", length)
	}
	w.record = append(w.record[:0], start...)
	for left := int(length) - len(start); left > 0; {
		from := page
		page = next
		if err := w.take(&w.link, page, from); err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(w.link)
		n := min(left, w.f.usable-4)
		w.record = append(w.record, w.link[4:4+n]...)
		left -= n
	}
	return w.record, nil
}

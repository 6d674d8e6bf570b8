// Package sqlitetest writes SQLite files for tests and samples: whole tables at once, with all
// kinds of pages that tables have. Rows come in the order of their numbers.
package sqlitetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Table is a table to write. A row's values are nil, int, float64, string, []byte or RowID.
type Table struct {
	SQL  string // CREATE TABLE name (...)
	Rows [][]any
}

// RowID stands for the row's number in a column that is INTEGER PRIMARY KEY. Rows without one are
// numbered in their order.
type RowID int64

// File is a file of these tables, with pages of a power of two of bytes.
func File(pageSize int, tables ...Table) []byte {
	w := &writer{size: pageSize}
	w.add()
	var schema []cell
	for i, t := range tables {
		root := w.add()
		w.tree(root, w.cells(t.Rows))
		name, _, _ := strings.Cut(strings.TrimPrefix(t.SQL, "CREATE TABLE "), "(")
		name = strings.TrimSpace(name)
		schema = append(schema, w.leafCell(int64(i+1), []any{"table", name, name, int(root), t.SQL}))
	}
	w.tree(1, schema)
	head := w.pages[0]
	copy(head, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(head[16:], uint16(pageSize&0xffff|pageSize>>16)) // 1 stands for 65536
	copy(head[18:], []byte{1, 1, 0, 64, 32, 32})
	binary.BigEndian.PutUint32(head[24:], 1) // changes, and below the change that the size is of
	binary.BigEndian.PutUint32(head[28:], uint32(len(w.pages)))
	binary.BigEndian.PutUint32(head[40:], 1)
	binary.BigEndian.PutUint32(head[44:], 4)
	binary.BigEndian.PutUint32(head[56:], 1)
	binary.BigEndian.PutUint32(head[92:], 1)
	var out []byte
	for _, p := range w.pages {
		out = append(out, p...)
	}
	return out
}

type writer struct {
	size  int
	pages [][]byte
}

// cell is a cell of a page and the greatest number of a row in or below it.
type cell struct {
	id   int64
	data []byte
}

// add takes a page and returns its number.
func (w *writer) add() uint32 {
	w.pages = append(w.pages, make([]byte, w.size))
	return uint32(len(w.pages))
}

func (w *writer) cells(rows [][]any) []cell {
	out := make([]cell, 0, len(rows))
	id := int64(0)
	for _, row := range rows {
		id++
		for _, v := range row {
			if n, ok := v.(RowID); ok {
				id = int64(n)
			}
		}
		out = append(out, w.leafCell(id, row))
	}
	return out
}

func (w *writer) leafCell(id int64, row []any) cell {
	record := encode(row)
	data := varint(varint(nil, uint64(len(record))), uint64(id))
	if most := w.size - 35; len(record) > most {
		least := (w.size-12)*32/255 - 23
		local := least + (len(record)-least)%(w.size-4)
		if local > most {
			local = least
		}
		data = append(data, record[:local]...)
		data = binary.BigEndian.AppendUint32(data, uint32(len(w.pages)+1))
		for rest := record[local:]; len(rest) > 0; {
			p := w.pages[w.add()-1]
			n := copy(p[4:], rest)
			if rest = rest[n:]; len(rest) > 0 {
				binary.BigEndian.PutUint32(p, uint32(len(w.pages)+1))
			}
		}
		return cell{id, data}
	}
	return cell{id, append(data, record...)}
}

// tree puts cells below a root.
func (w *writer) tree(root uint32, cells []cell) {
	const leaf, inner = 13, 5
	kind := byte(leaf)
	for {
		if rest := w.fill(root, kind, cells); len(rest) == 0 {
			return
		}
		var above []cell
		for rest := cells; len(rest) > 0; {
			page := w.add()
			left := w.fill(page, kind, rest)
			last := rest[len(rest)-len(left)-1].id
			above = append(above, cell{last, varint(binary.BigEndian.AppendUint32(nil, page), uint64(last))})
			rest = left
		}
		cells, kind = above, inner
	}
}

// fill writes as many cells as a page holds and returns the others. The last of an inner page's is
// its way to the right.
func (w *writer) fill(page uint32, kind byte, cells []cell) (rest []cell) {
	p := w.pages[page-1]
	head := 0
	if page == 1 {
		head = 100
	}
	clear(p[head:])
	p[head] = kind
	pointers, content := head+8, w.size
	if kind == 5 {
		pointers += 4
	}
	n := 0
	for ; n < len(cells) && content-len(cells[n].data) >= pointers+2; n++ {
		content -= copy(p[content-len(cells[n].data):], cells[n].data)
		binary.BigEndian.PutUint16(p[pointers:], uint16(content))
		pointers += 2
	}
	rest = cells[n:]
	if kind == 5 {
		n--
		last := cells[n].data
		copy(p[head+8:head+12], last)
		clear(p[content : content+len(last)])
		content += len(last)
		clear(p[pointers-2 : pointers])
	}
	binary.BigEndian.PutUint16(p[head+3:], uint16(n))
	binary.BigEndian.PutUint16(p[head+5:], uint16(content))
	return rest
}

// encode is a record: the serial types of its values, then the values, each as short as it can be.
func encode(row []any) []byte {
	var types, body []byte
	for _, v := range row {
		switch v := v.(type) {
		case nil, RowID:
			types = varint(types, 0)
		case float64:
			types = varint(types, 7)
			body = binary.BigEndian.AppendUint64(body, math.Float64bits(v))
		case string:
			types = varint(types, uint64(13+2*len(v)))
			body = append(body, v...)
		case []byte:
			types = varint(types, uint64(12+2*len(v)))
			body = append(body, v...)
		case int:
			code, bytes := whole(v)
			types = varint(types, code)
			for i := bytes - 1; i >= 0; i-- {
				body = append(body, byte(v>>(8*i)))
			}
		default:
			panic(fmt.Sprintf("sqlitetest: a value of type %T", v))
		}
	}
	size := len(types) + 1
	if size > 127 {
		size++
	}
	return append(append(varint(nil, uint64(size)), types...), body...)
}

// whole is the serial type of a whole number and its length.
func whole(v int) (code uint64, bytes int) {
	if v == 0 || v == 1 {
		return uint64(8 + v), 0
	}
	for i, n := range []int{1, 2, 3, 4, 6} {
		if limit := 1 << (8*n - 1); v >= -limit && v < limit {
			return uint64(i + 1), n
		}
	}
	return 6, 8
}

func varint(b []byte, v uint64) []byte {
	if v>>56 != 0 {
		for shift := 57; shift >= 8; shift -= 7 {
			b = append(b, byte(v>>shift)|0x80)
		}
		return append(b, byte(v))
	}
	for shift := 49; shift > 0; shift -= 7 {
		if v>>shift != 0 {
			b = append(b, byte(v>>shift)|0x80)
		}
	}
	return append(b, byte(v)&0x7f)
}

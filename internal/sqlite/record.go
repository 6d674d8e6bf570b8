package sqlite

import (
	"errors"
	"math"

	"haul/internal/limits"
)

// Value is one field of a row. Text and blobs are bytes of the page, which the next row overwrites.
type Value struct {
	kind   kind
	number int64 // or a float's bits
	bytes  []byte
}

type kind uint8

const (
	null kind = iota
	integer
	float
	text
)

// Null tells whether nothing is there.
func (v Value) Null() bool { return v.kind == null }

// Int is a whole number.
func (v Value) Int() (n int64, ok bool) {
	switch v.kind {
	case integer:
		return v.number, true
	case float: // a column of numbers may hold whole ones so
		f := math.Float64frombits(uint64(v.number))
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<63
	}
	return 0, false
}

// Bytes is text or a blob, and nil for anything else.
func (v Value) Bytes() []byte { return v.bytes }

// errRecord is a row that contradicts itself.
var errRecord = errors.New("its fields do not fit into it")

// values picks the wanted fields out of a row and hands them over.
func (w *walk) values(record []byte, id int64) error {
	size, n := varint(record)
	if n == 0 || size < uint64(n) || size > uint64(len(record)) {
		return errRecord
	}
	types, body := record[n:size], record[size:]
	clear(w.row)
	i := 0
	for ; i < len(w.slot) && len(types) > 0; i++ {
		code, n := uint64(types[0]), 1
		if code >= 0x80 {
			if code, n = varint(types); n == 0 {
				return errRecord
			}
		}
		types = types[n:]
		length := fieldSize(code)
		if length > uint64(len(body)) {
			return errRecord
		}
		if s := w.slot[i]; s >= 0 {
			v := &w.row[s]
			v.decode(code, body[:length:length])
			if code == 0 && i == w.table.rowID {
				v.kind, v.number = integer, id
			}
		}
		body = body[length:]
	}
	if w.f.fields += 1 + int64(i); w.f.fields > w.f.limits.Most(limits.Fields) { // a row without fields counts too
		return w.f.limits.Beyond(limits.Fields)
	}
	return w.each(w.row)
}

// fieldSize is the length of a field by its serial type; that of a reserved type is none that fits.
func fieldSize(code uint64) uint64 {
	if code < 12 {
		return [12]uint64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, math.MaxUint64, math.MaxUint64}[code]
	}
	return (code - 12) / 2
}

// decode takes a field of its length into an empty value.
func (v *Value) decode(code uint64, body []byte) {
	switch {
	case code == 0:
	case code <= 7:
		n := int64(int8(body[0])) // the sign
		for _, b := range body[1:] {
			n = n<<8 | int64(b)
		}
		v.kind, v.number = integer, n
		if code == 7 {
			v.kind = float
		}
	case code <= 9:
		v.kind, v.number = integer, int64(code-8)
	default:
		v.kind, v.bytes = text, body
	}
}

// varint decodes SQLite's numbers of one to nine bytes, the most significant first; n is 0 where
// they are cut off.
func varint(b []byte) (v uint64, n int) {
	for n < len(b) {
		c := b[n]
		n++
		if n == 9 {
			return v<<8 | uint64(c), n
		}
		v = v<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return v, n
		}
	}
	return 0, 0
}

package serve

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// table is a run's CSV file as it grows. Rows are kept as JSON, encoded once. The slice only
// grows, or is replaced by a new one, so a reader of an earlier slice may keep reading it.
type table struct {
	Columns []string          `json:"columns" api:"null"`
	Rows    []json.RawMessage `json:"rows" api:"null"`
	Cut     bool              `json:"cut,omitempty"` // the file is longer than what is kept

	info fs.FileInfo // of the file that was read
	read int64       // bytes of it
	last []string    // cells of the last row
}

// What is kept of one file.
const (
	tableBytes = 32 << 20
	tableRows  = 50_000
)

// follow reads what a file has gained. A file that was replaced or cut (a resumed run does both) is
// read from its beginning: fresh says so.
func (t *table) follow(open func() (*os.File, error), info fs.FileInfo) (grown, fresh bool, err error) {
	if t.info != nil && os.SameFile(t.info, info) && info.Size() == t.info.Size() && info.ModTime().Equal(t.info.ModTime()) {
		return false, false, nil
	}
	f, err := open()
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil { // of what was opened, which may have taken the name since
		return false, false, err
	}
	if t.info == nil || !os.SameFile(t.info, info) || info.Size() < t.read {
		*t = table{Columns: []string{}, Rows: []json.RawMessage{}} // which JSON has as lists, not as null
		fresh = true
	}
	if t.Cut {
		t.info = info
		return false, false, nil
	}
	room := tableBytes - t.read
	text, err := io.ReadAll(io.NewSectionReader(f, t.read, room))
	if err != nil {
		return false, fresh, err
	}
	t.info = info
	whole := bytes.LastIndexByte(text, '\n') + 1 // a row that is half written is read when it ends
	before := len(t.Rows)
	t.parse(text[:whole])
	t.read += int64(whole)
	t.Cut = len(t.Rows) >= tableRows || int64(len(text)) == room // the last row rarely ends just there
	return len(t.Rows) > before || fresh, fresh, nil
}

// parse takes whole lines. A line that is no row of the table is passed over.
func (t *table) parse(text []byte) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	for len(t.Rows) < tableRows {
		cells, err := r.Read()
		if err == io.EOF {
			return
		}
		switch {
		case err != nil:
		case len(t.Columns) == 0:
			t.Columns = cells
		case len(cells) == len(t.Columns):
			t.Rows, t.last = append(t.Rows, encodeCells(cells)), cells
		}
	}
}

// encodeCells writes a row as a JSON array: numbers and truth values as such, nothing and what is
// no finite number as null.
func encodeCells(cells []string) json.RawMessage {
	b := []byte{'['}
	for i, c := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, encodeCell(c)...)
	}
	return append(b, ']')
}

func encodeCell(c string) []byte {
	if c == "true" || c == "false" {
		return []byte(c)
	}
	if x, err := strconv.ParseFloat(c, 64); err == nil && !strings.ContainsAny(c, "xX_pP") {
		if x-x != 0 {
			return []byte("null")
		}
		return strconv.AppendFloat(nil, x, 'g', -1, 64)
	}
	if c == "" || strings.EqualFold(c, "nan") {
		return []byte("null")
	}
	text, _ := json.Marshal(c) // a string
	return text
}

// figures are the last row by column.
func (t *table) figures() map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(t.last))
	for i, c := range t.last {
		out[t.Columns[i]] = encodeCell(c)
	}
	return out
}

// number is a figure of the last row.
func (t *table) number(column int) (float64, bool) {
	if column >= len(t.last) {
		return 0, false
	}
	x, err := strconv.ParseFloat(t.last[column], 64)
	return x, err == nil && x-x == 0
}

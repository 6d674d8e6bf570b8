package files

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spreadsheets of Office Open XML (.xlsx): the sheets' cells as text, formulas by their saved
// values. What a reader could break: dates and times are numbers that only their cell format
// identifies, and are given as 08:30:00 or 2024-05-01 08:30:00. Nothing in a file is trusted
// before its size is checked.

const (
	xlsxMost  = 256 << 20 // bytes that a part may unpack to
	xlsxCells = 8 << 20   // cells of a sheet
)

// isArchive tells the archive that a spreadsheet is.
func isArchive(text []byte) bool { return bytes.HasPrefix(text, []byte("PK\x03\x04")) }

type xlsx struct {
	name    string
	files   map[string]*zip.File
	strings []string
	formats []cellFormat // by style
	base    time.Time    // of dates
}

// cellFormat is what a number in a cell stands for.
type cellFormat int

const (
	plainNumber cellFormat = iota
	timeOfDay
	dateAndTime
)

func readXLSX(data []byte, name string) ([]*sheet, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: this is an archive that cannot be opened: %w", name, err)
	}
	x := &xlsx{name: name, files: map[string]*zip.File{}}
	for _, f := range z.File {
		x.files[strings.TrimPrefix(f.Name, "/")] = f
	}
	if x.files["xl/workbook.xml"] == nil {
		return nil, fmt.Errorf("%s: this is an archive and no spreadsheet (.xlsx)", name)
	}
	var book struct {
		Properties struct {
			Date1904 string `xml:"date1904,attr"`
		} `xml:"workbookPr"`
		Sheets []struct {
			Name  string `xml:"name,attr"`
			State string `xml:"state,attr"`
			ID    string `xml:"http://schemas.openxmlformats.org/officeDocument/2006/relationships id,attr"`
		} `xml:"sheets>sheet"`
	}
	var links struct {
		List []struct {
			ID     string `xml:"Id,attr"`
			Target string `xml:"Target,attr"`
		} `xml:"Relationship"`
	}
	if err := x.parse("xl/workbook.xml", &book); err != nil {
		return nil, err
	}
	if err := x.parse("xl/_rels/workbook.xml.rels", &links); err != nil {
		return nil, err
	}
	x.base = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if d := book.Properties.Date1904; d == "1" || d == "true" {
		x.base = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if err := x.shared(); err != nil {
		return nil, err
	}
	if err := x.styles(); err != nil {
		return nil, err
	}
	var out []*sheet
	var hidden []string
	for _, b := range book.Sheets {
		if b.State == "hidden" || b.State == "veryHidden" {
			hidden = append(hidden, printable(b.Name))
			continue
		}
		for _, l := range links.List {
			if l.ID != b.ID {
				continue
			}
			file := path.Join("xl", l.Target)
			if strings.HasPrefix(l.Target, "/") {
				file = strings.TrimPrefix(l.Target, "/")
			}
			s, err := x.sheet(file, printable(b.Name))
			if err != nil {
				return nil, err
			}
			if s != nil {
				out = append(out, s)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no sheet of it has a header: expected id,x,y,demand or id,lat,lon,demand", name)
	}
	if len(out) == 1 {
		out[0].name = name
	}
	out[0].hidden = hidden
	return out, nil
}

func (x *xlsx) open(file string) (*xml.Decoder, io.Closer, error) {
	f := x.files[file]
	if f == nil {
		return nil, nil, fmt.Errorf("%s: it has no part %s", x.name, quoteShort(file))
	}
	r, err := f.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", x.name, quoteShort(file), err)
	}
	return xml.NewDecoder(io.LimitReader(r, xlsxMost)), r, nil
}

// parse reads a whole part.
func (x *xlsx) parse(file string, to any) error {
	d, c, err := x.open(file)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%s: %s: %s", x.name, quoteShort(file), printable(err.Error()))
	}
	return nil
}

// text is a string that may be in runs of different looks.
type xlsxText struct {
	T    string `xml:"t"`
	Runs []struct {
		T string `xml:"t"`
	} `xml:"r"`
}

func (t *xlsxText) String() string {
	s := t.T
	for _, r := range t.Runs {
		s += r.T
	}
	return s
}

func (x *xlsx) shared() error {
	if x.files["xl/sharedStrings.xml"] == nil {
		return nil
	}
	var all struct {
		List []xlsxText `xml:"si"`
	}
	if err := x.parse("xl/sharedStrings.xml", &all); err != nil {
		return err
	}
	for i := range all.List {
		x.strings = append(x.strings, all.List[i].String())
	}
	return nil
}

// styles finds the formats that make a number a time.
func (x *xlsx) styles() error {
	if x.files["xl/styles.xml"] == nil {
		return nil
	}
	var all struct {
		Formats []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	if err := x.parse("xl/styles.xml", &all); err != nil {
		return err
	}
	own := map[int]cellFormat{}
	for _, f := range all.Formats {
		own[f.ID] = formatOf(f.Code)
	}
	for _, c := range all.Cells {
		kind, ok := own[c.Format]
		if !ok {
			switch n := c.Format; {
			case n >= 14 && n <= 17 || n == 22:
				kind = dateAndTime
			case n >= 18 && n <= 21 || n >= 45 && n <= 47:
				kind = timeOfDay
			}
		}
		x.formats = append(x.formats, kind)
	}
	return nil
}

// formatOf reads a number format: letters of days and years, or of hours and seconds alone, outside
// of quotes and of brackets other than those of elapsed time.
func formatOf(code string) cellFormat {
	code, _, _ = strings.Cut(code, ";")
	quoted, bracket := false, false
	kind, minutes := plainNumber, false
	for i := 0; i < len(code); i++ {
		switch c := code[i] | 0x20; {
		case code[i] == '\\':
			i++
		case code[i] == '"':
			quoted = !quoted
		case quoted:
		case code[i] == '[':
			bracket = i+1 < len(code) && !strings.ContainsRune("hmsHMS", rune(code[i+1]))
		case code[i] == ']':
			bracket = false
		case bracket:
		case c == 'd' || c == 'y':
			return dateAndTime
		case c == 'h' || c == 's':
			kind = timeOfDay
		case c == 'm':
			minutes = true
		}
	}
	if kind == plainNumber && minutes {
		return dateAndTime // of months
	}
	return kind
}

type xlsxCell struct {
	Ref    string    `xml:"r,attr"`
	Style  int       `xml:"s,attr"`
	Type   string    `xml:"t,attr"`
	Saved  *string   `xml:"v"`
	Made   *string   `xml:"f"` // a formula
	Inline *xlsxText `xml:"is"`
	Value  string    `xml:"-"` // what was saved
}

// sheet reads a sheet: its first row that holds anything is the header. nil: it is empty.
func (x *xlsx) sheet(file, title string) (*sheet, error) {
	d, c, err := x.open(file)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s := &sheet{name: x.name + ":" + title, title: title, decimal: strings.TrimSpace}
	row, cells := 0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s", s.name, printable(err.Error()))
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "row" {
			continue
		}
		var r struct {
			Number int        `xml:"r,attr"`
			Cells  []xlsxCell `xml:"c"`
		}
		if err := d.DecodeElement(&r, &start); err != nil {
			return nil, fmt.Errorf("%s: %s", s.name, printable(err.Error()))
		}
		if row++; r.Number > 0 {
			row = r.Number
		}
		if cells += len(r.Cells); cells > xlsxCells {
			return nil, fmt.Errorf("%s: more than %d cells", s.name, xlsxCells)
		}
		list, err := x.row(s, row, r.Cells)
		if err != nil {
			return nil, err
		}
		switch {
		case list == nil:
		case s.head == nil:
			s.head, s.at = list, row
		case s.untitled(list):
			s.head, s.at = list, row
		default:
			for len(list) < len(s.head) {
				list = append(list, "")
			}
			for i := len(s.head); i < len(list); i++ {
				if list[i] != "" {
					return nil, s.errorf(row, "the cell %s is beside the header", quoteShort(list[i]))
				}
			}
			s.rows, s.lines = append(s.rows, list[:len(s.head)]), append(s.lines, row)
		}
	}
	if s.head == nil {
		return nil, nil
	}
	return s, nil
}

// row is a row's cells by column; nil: all are empty.
func (x *xlsx) row(s *sheet, row int, cells []xlsxCell) ([]string, error) {
	var list []string
	for i := range cells {
		c := &cells[i]
		at := len(list)
		if c.Ref != "" {
			if at = columnOf(c.Ref); at < 0 || at >= 1<<14 {
				return nil, s.errorf(row, "there is no cell %s", quoteShort(c.Ref))
			}
		}
		text, err := x.cell(c)
		if err != nil {
			return nil, s.errorf(row, "cell %s %v", quoteShort(c.Ref), err)
		}
		for len(list) <= at {
			list = append(list, "")
		}
		list[at] = strings.TrimSpace(text)
	}
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	if !slices.ContainsFunc(list, func(c string) bool { return c != "" }) {
		return nil, nil
	}
	return list, nil
}

// columnOf is the column of a cell's name: 2 of C7.
func columnOf(ref string) int {
	n := 0
	for _, c := range ref {
		if c < 'A' || c > 'Z' {
			break
		}
		if n = 26*n + int(c-'A') + 1; n > 1<<20 {
			return -1
		}
	}
	return n - 1
}

// cell is a cell's text.
func (x *xlsx) cell(c *xlsxCell) (string, error) {
	if c.Saved != nil {
		c.Value = *c.Saved
	} else if c.Made != nil && c.Inline == nil {
		return "", fmt.Errorf("holds a formula whose value was not saved: open and save the file in a spreadsheet program")
	}
	switch c.Type {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(c.Value))
		if err != nil || i < 0 || i >= len(x.strings) {
			return "", fmt.Errorf("names a text that does not exist")
		}
		return x.strings[i], nil
	case "inlineStr":
		if c.Inline == nil {
			return "", nil
		}
		return c.Inline.String(), nil
	case "b":
		return map[bool]string{true: "yes", false: "no"}[c.Value == "1"], nil
	case "e":
		return "", fmt.Errorf("holds the error %s", quoteShort(c.Value))
	case "str", "d":
		return strings.Replace(c.Value, "T", " ", 1), nil
	}
	if c.Value == "" || c.Style < 0 || c.Style >= len(x.formats) || x.formats[c.Style] == plainNumber {
		return c.Value, nil
	}
	v, err := strconv.ParseFloat(c.Value, 64)
	if err != nil || !(math.Abs(v) < 1e7) {
		return c.Value, nil
	}
	seconds := int64(math.Round(v * 86400))
	if x.formats[c.Style] == timeOfDay && seconds >= 0 && v < 100 {
		return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60), nil
	}
	return x.base.Add(time.Duration(seconds) * time.Second).Format(dateForm), nil
}

// dateForm is how a date with a time is written.
const dateForm = "2006-01-02 15:04:05"

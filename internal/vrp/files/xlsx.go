package files

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"haul/internal/limits"
)

// Spreadsheets of Office Open XML (.xlsx): the sheets' cells as text, formulas by their saved
// values. What a reader could break: dates and times are numbers that only their cell format
// identifies, and are given as 08:30:00 or 2024-05-01 08:30:00. Every part is read as a stream
// whose bytes, rows and cells are counted against limits before they are kept.

// isArchive tells the archive that a spreadsheet is.
func isArchive(text []byte) bool { return bytes.HasPrefix(text, []byte("PK\x03\x04")) }

type xlsx struct {
	name    string
	tally   *tally
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

func readXLSX(data []byte, name string, t *tally) ([]*sheet, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: this is an archive that cannot be opened: %w", name, err)
	}
	x := &xlsx{name: name, tally: t, files: map[string]*zip.File{}}
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
			if err := t.sheet(); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			s, err := x.sheet(file, printable(b.Name))
			if err != nil {
				return nil, err
			}
			if s != nil {
				out = append(out, s)
			}
			break
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

func (x *xlsx) open(file string, most limits.Name) (*xml.Decoder, io.Closer, error) {
	f := x.files[file]
	if f == nil {
		return nil, nil, fmt.Errorf("%s: it has no part %s", x.name, quoteShort(file))
	}
	r, err := f.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", x.name, quoteShort(file), err)
	}
	return xml.NewDecoder(x.tally.unpack(r, most)), r, nil
}

// parse reads a whole part.
func (x *xlsx) parse(file string, to any) error {
	d, c, err := x.open(file, limits.Styles)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%s: %s: %w", x.name, quoteShort(file), readable(err))
	}
	return nil
}

// readable is an error of a decoder in characters that can be shown. One of a limit or of a context
// stays what it is.
func readable(err error) error {
	var over *limits.Error
	switch {
	case errors.As(err, &over):
		return over
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return errors.New(printable(err.Error()))
}

// text reads a string that may be in runs of different looks, up to the end of the element that it
// is in. How it is pronounced is no part of it.
func (x *xlsx) text(d *xml.Decoder) (string, error) {
	var out strings.Builder
	depth, skipped, inside := 0, 0, false
	for {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		switch e := token.(type) {
		case xml.StartElement:
			depth++
			if skipped > 0 || e.Name.Local == "rPh" {
				skipped++
			}
			inside = skipped == 0 && e.Name.Local == "t"
		case xml.EndElement:
			if depth == 0 {
				return out.String(), nil
			}
			depth--
			skipped, inside = max(0, skipped-1), false
		case xml.CharData:
			if !inside {
				continue
			}
			if err := x.tally.limits.Over(limits.CellText, int64(out.Len()+len(e))); err != nil {
				return "", err
			}
			out.Write(e)
		}
	}
}

// plain reads the characters of an element up to its end.
func (x *xlsx) plain(d *xml.Decoder) (string, error) {
	var out []byte
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		switch e := token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			if depth--; depth < 0 {
				return string(out), nil
			}
		case xml.CharData:
			if depth == 0 {
				out = append(out, e...)
			}
			if err := x.tally.limits.Over(limits.CellText, int64(len(out))); err != nil {
				return "", err
			}
		}
	}
}

// shared reads the texts that cells name by number. Each counts as a cell.
func (x *xlsx) shared() error {
	const file = "xl/sharedStrings.xml"
	if x.files[file] == nil {
		return nil
	}
	d, c, err := x.open(file, limits.Unpacked)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if e, ok := token.(xml.StartElement); err == nil && ok && e.Name.Local == "si" {
			if err = x.tally.cell(1); err == nil {
				var text string
				if text, err = x.text(d); err == nil {
					x.strings = append(x.strings, text)
				}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", x.name, file, readable(err))
		}
	}
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
	ref, kind string
	style     int
	saved     bool // it has a value
	made      bool // by a formula
	value     string
	inline    *string
}

// cellOf reads a cell up to its end.
func (x *xlsx) cellOf(d *xml.Decoder, start *xml.StartElement) (c xlsxCell, err error) {
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "r":
			c.ref = a.Value
		case "t":
			c.kind = a.Value
		case "s":
			if c.style, err = strconv.Atoi(strings.TrimSpace(a.Value)); err != nil {
				return c, err
			}
		}
	}
	for {
		token, err := d.Token()
		if err != nil {
			return c, err
		}
		switch e := token.(type) {
		case xml.EndElement:
			return c, nil
		case xml.StartElement:
			switch e.Name.Local {
			case "v":
				c.saved = true
				c.value, err = x.plain(d)
			case "f":
				c.made = true
				_, err = x.plain(d)
			case "is":
				var text string
				text, err = x.text(d)
				c.inline = &text
			default:
				err = d.Skip()
			}
			if err != nil {
				return c, err
			}
		}
	}
}

// sheet reads a sheet: its first row that holds anything is the header. nil: it is empty.
func (x *xlsx) sheet(file, title string) (*sheet, error) {
	d, c, err := x.open(file, limits.Unpacked)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s := &sheet{name: x.name + ":" + title, title: title, decimal: strings.TrimSpace}
	row := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, readable(err))
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "row" {
			continue
		}
		row++
		for _, a := range start.Attr {
			if n, err := strconv.Atoi(strings.TrimSpace(a.Value)); a.Name.Local == "r" && err != nil {
				return nil, s.errorf(row, "there is no row %s", quoteShort(a.Value))
			} else if a.Name.Local == "r" && n > 0 {
				row = n
			}
		}
		list, err := x.row(d, s, row)
		if err != nil {
			return nil, err
		}
		if err := x.tally.row(len(s.head)); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
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
			s.rows, s.lines = append(s.rows, list[:len(s.head):len(s.head)]), append(s.lines, row)
		}
	}
	if s.head == nil {
		return nil, nil
	}
	return s, nil
}

// row reads a row's cells by column, up to the row's end; nil: all are empty.
func (x *xlsx) row(d *xml.Decoder, s *sheet, row int) ([]string, error) {
	var list []string
	for {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, readable(err))
		}
		if _, ok := token.(xml.EndElement); ok {
			break
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "c" {
			if err := d.Skip(); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, readable(err))
			}
			continue
		}
		c, err := x.cellOf(d, &start)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", s.name, row, readable(err))
		}
		at := len(list)
		if c.ref != "" {
			if at = columnOf(c.ref); at < 0 || at >= 1<<14 {
				return nil, s.errorf(row, "there is no cell %s", quoteShort(c.ref))
			}
		}
		text, err := x.cell(&c)
		if err != nil {
			return nil, s.errorf(row, "cell %s %v", quoteShort(c.ref), err)
		}
		// A cell is counted even where it stands in the place of one before.
		if err := x.tally.cell(max(1, at+1-len(list))); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
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
	if !c.saved && c.made && c.inline == nil {
		return "", fmt.Errorf("holds a formula whose value was not saved: open and save the file in a spreadsheet program")
	}
	switch c.kind {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(c.value))
		if err != nil || i < 0 || i >= len(x.strings) {
			return "", fmt.Errorf("names a text that does not exist")
		}
		return x.strings[i], nil
	case "inlineStr":
		if c.inline == nil {
			return "", nil
		}
		return *c.inline, nil
	case "b":
		return map[bool]string{true: "yes", false: "no"}[c.value == "1"], nil
	case "e":
		return "", fmt.Errorf("holds the error %s", quoteShort(c.value))
	case "str", "d":
		return strings.Replace(c.value, "T", " ", 1), nil
	}
	if c.value == "" || c.style < 0 || c.style >= len(x.formats) || x.formats[c.style] == plainNumber {
		return c.value, nil
	}
	v, err := strconv.ParseFloat(c.value, 64)
	if err != nil || !(math.Abs(v) < 1e7) {
		return c.value, nil
	}
	seconds := int64(math.Round(v * 86400))
	if x.formats[c.style] == timeOfDay && seconds >= 0 && v < 100 {
		return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60), nil
	}
	return x.base.Add(time.Duration(seconds) * time.Second).Format(dateForm), nil
}

// dateForm is how a date with a time is written.
const dateForm = "2006-01-02 15:04:05"

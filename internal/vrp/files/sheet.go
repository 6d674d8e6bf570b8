package files

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tables as rows of cells, from .csv, .tsv, .xlsx or GeoJSON. What a reader could break: a row
// keeps the number of its line, because every message names it.

// Farthest is how far from 0 a coordinate may lie where distances are not rounded: its routes are
// still told apart to a ten-thousandth.
const Farthest = 1e12

// sheet is one table: a header and its rows, which have as many cells as it.
type sheet struct {
	name    string // what messages call it: the file's name, and the sheet's where there are several
	title   string // of the sheet within its file; "" where a file is one table
	head    []string
	at      int // line of the header
	rows    [][]string
	lines   []int               // of the rows
	hashed  []int               // lines of rows that begin as a comment does
	beside  bool                // a file beside that of the customers: notes name it
	titles  []string            // cells that stand alone above the header
	hidden  []string            // titles of sheets of the same file that nobody sees and that are not read
	decimal func(string) string // a cell's number with a decimal point
	commas  bool                // numbers may have decimal commas
	foreign bool                // a file with columns for other programs
}

var (
	decimalComma = regexp.MustCompile(`^-?\d+,\d+$`)
	manyPoints   = regexp.MustCompile(`^-?[1-9]\d{0,2}(\.\d{3})+$`)
)

// thousands tells of numbers such as 1.000 in a table with decimal commas, whose point may be one
// between thousands and is read as a decimal one. A column that has both is refused.
func (s *sheet) thousands() (notes []string, err error) {
	if !s.commas || !slices.ContainsFunc(s.rows, func(r []string) bool { return slices.ContainsFunc(r, decimalComma.MatchString) }) {
		return nil, nil
	}
	for c, h := range s.head {
		key := columnKey(h)
		if slices.Contains([]string{"id", "name", "x", "y", "lat", "lon"}, key) {
			continue
		}
		line, odd, comma, plain := 0, "", false, false
		for i, cells := range s.rows {
			switch text := strings.TrimSpace(cells[c]); {
			case decimalComma.MatchString(text):
				comma = true
			case manyPoints.MatchString(text) && odd == "":
				line, odd = s.lines[i], text
			case strings.Contains(text, ".") && !manyPoints.MatchString(text):
				plain = true
			}
		}
		switch called := quoteShort(printable(strings.TrimSpace(h))); {
		case odd == "" || plain:
		case comma:
			return nil, s.errorf(line, "column %s has decimal commas, and %q with a point: write it without", called, odd)
		default:
			notes = append(notes, fmt.Sprintf("column %s: %q is read with a decimal point, though others have decimal commas: write it without if it parts thousands", called, odd))
		}
	}
	return notes, nil
}

// where is a row's place in a message.
func (s *sheet) where(row int) string { return fmt.Sprintf("%s:%d", s.name, s.lines[row]) }

func (s *sheet) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", s.name, line, fmt.Sprintf(format, args...))
}

// untitled says that a row is the header of a sheet whose rows so far have one cell each: they are
// a title, as people write it above a table, and are kept as such.
func (s *sheet) untitled(row []string) bool {
	if filled(row) < 2 || filled(s.head) > 1 || slices.ContainsFunc(s.rows, func(r []string) bool { return filled(r) > 1 }) {
		return false
	}
	for _, r := range append([][]string{s.head}, s.rows...) {
		s.titles = append(s.titles, strings.TrimSpace(strings.Join(r, "")))
	}
	s.rows, s.lines = nil, nil
	return true
}

// filled counts the cells that are not empty.
func filled(cells []string) (n int) {
	for _, c := range cells {
		if strings.TrimSpace(c) != "" {
			n++
		}
	}
	return n
}

// readCells reads a table of separated cells. Cells are separated by commas, or as spreadsheets in
// other languages do it, by semicolons, where a number may have a decimal comma, or by tabs.
func readCells(r io.Reader, name string, t *tally) (*sheet, error) {
	text, err := io.ReadAll(lineEnds(io.LimitReader(r, maxFile)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	start := text[:min(len(text), headWithin)]
	if bad := notText(start); bad != "" {
		return nil, fmt.Errorf("%s: %s", name, bad)
	}
	comma, _ := separator(start)
	hashed := markComments(text, comma)
	in := csv.NewReader(bytes.NewReader(text))
	in.Comma, in.Comment = comma, commentMark
	in.TrimLeadingSpace = in.Comma != '\t' // or an empty cell would be none
	s := &sheet{name: name, at: 1, hashed: hashed, commas: comma == ';', decimal: func(s string) string {
		s = strings.TrimSpace(s)
		if in.Comma == ';' && !strings.Contains(s, ".") {
			s = strings.Replace(s, ",", ".", 1)
		}
		return s
	}}
	if s.head, err = in.Read(); err != nil {
		return nil, fmt.Errorf("%s:1: no header: expected id,x,y,demand or id,lat,lon,demand", name)
	}
	s.at, _ = in.FieldPos(0)
	if short := strings.TrimPrefix(s.head[0], "#"); short != "" {
		s.head[0] = short
	}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		var bad *csv.ParseError // of a row that may have no field yet, and so no place
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("%s:%d: not a row like the header: %w", name, bad.StartLine, bad.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := t.row(len(cells)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		if filled(cells) == 0 {
			continue // a row of empty cells, as spreadsheets leave them
		}
		if s.untitled(cells) {
			s.head, s.at = cells, line
			continue
		}
		s.rows, s.lines = append(s.rows, cells), append(s.lines, line)
	}
}

// commentMark begins a line that is a comment; no text holds it.
const commentMark = '\x01'

// markComments puts commentMark at the beginning of lines that are comments, those that begin with
// # and are not cells like the first line's, and of blank ones. Rows that begin with # are told by
// their lines: an order may be called #1001, and a row that somebody left out looks the same.
func markComments(text []byte, comma rune) (hashed []int) {
	width, number, quoted := 0, 0, false
	for line := range bytes.Lines(text) {
		number++
		if line[0] == commentMark {
			line[0] = ' '
		}
		bare := bytes.TrimRight(line, "\r\n")
		if !quoted && len(bare) > 0 && len(bytes.TrimSpace(bare)) == 0 && !bytes.ContainsRune(bare, comma) {
			line[0] = commentMark
			continue
		}
		inside, cells := quoted, 1 // inside: a quoted cell that goes on over lines
		for _, c := range string(line) {
			switch {
			case c == '"':
				quoted = !quoted
			case c == comma && !quoted:
				cells++
			}
		}
		switch {
		case inside || len(bare) == 0:
		case bare[0] != '#' || width == 0 && headed(bare):
			width = max(width, cells)
		case cells == width && width > 1 && !spaced(bare):
			hashed = append(hashed, number)
		default:
			line[0], quoted = commentMark, false // a comment's quotes are words
		}
	}
	return hashed
}

// spaced tells whether a line that begins with # goes on as a comment does, with a blank.
func spaced(line []byte) bool { return len(line) < 2 || line[1] == ' ' || line[1] == '\t' }

// headed tells whether a line that begins with # is a header whose first column is called so, as
// in "#,x,y,demand".
func headed(line []byte) bool {
	known := 0
	for cell := range strings.FieldsFuncSeq(string(line), func(c rune) bool { return strings.ContainsRune(",;\t", c) }) {
		if tells(columnKey(strings.Trim(cell, "\ufeff\" \t"))) {
			known++
		}
	}
	return known > 1 && !spaced(line)
}

// headWithin is how many bytes may stand up to the end of a header.
const headWithin = 1 << 16

// IsTable tells whether a text begins as a table of customers does: its first line that is no
// comment names two columns that are known, or it is a spreadsheet.
func IsTable(text []byte) bool {
	if isArchive(text) {
		return true
	}
	_, is := separator(bytes.ReplaceAll(text[:min(len(text), headWithin)], []byte("\r"), []byte("\n")))
	return is
}

// StartsTable is IsTable of what a reader has, which is read as far as a header may go.
func StartsTable(r io.Reader) (bool, error) {
	head, err := io.ReadAll(io.LimitReader(r, headWithin))
	return IsTable(head), err
}

// separator is what parts the cells of a table, by its header: what gives the most columns that are
// known. is tells whether there are two of them.
func separator(start []byte) (comma rune, is bool) {
	comma = ','
	for line := range bytes.Lines(start) {
		if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) == 0 || line[0] == '#' && !headed(line) {
			continue
		}
		if alone := bytes.Trim(line, ",;\t "); len(alone) < len(bytes.TrimSpace(line)) && !bytes.ContainsAny(alone, ",;\t") {
			continue // a title above the header, or a row of empty cells, as spreadsheets save them
		}
		line = bytes.TrimSpace(line)
		if key, _, is := strings.Cut(string(line), ":"); is && slices.Contains(keywords, strings.TrimSpace(key)) {
			return comma, false // VRPLIB's, whose NAME may be "a,x,y"
		}
		most := 0
		for _, c := range ",;\t" {
			known := 0
			for cell := range strings.SplitSeq(string(line), string(c)) {
				if tells(columnKey(strings.Trim(cell, "\ufeff\" \t"))) {
					known++
				}
			}
			if known > most {
				comma, most = c, known
			}
		}
		if most < 2 {
			for _, c := range ",;\t" {
				if bytes.ContainsRune(line, c) {
					comma = c
					break
				}
			}
		}
		return comma, most >= 2
	}
	return comma, false
}

// readBook reads the tables of a file: one of separated cells, or the sheets of a spreadsheet.
func readBook(data []byte, name string, t *tally) ([]*sheet, error) {
	if isArchive(data) {
		return readXLSX(data, name, t)
	}
	s, err := readCells(bytes.NewReader(data), name, t)
	if err != nil {
		return nil, err
	}
	return []*sheet{s}, nil
}

func itoa(n int) string { return strconv.Itoa(n) }

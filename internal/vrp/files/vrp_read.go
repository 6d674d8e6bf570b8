package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"haul/internal/vrp"
)

// Reading CVRPLIB's .vrp files. What a reader could break: nothing is allocated from DIMENSION
// before as many records were read from the file, so a false DIMENSION cannot cost memory; and
// what cannot be honoured is an error, because an ignored limit is a wrong answer.
//
// Nodes. A file numbers its nodes from 1 and names one of them the depot, nearly always node 1.
// The depot becomes node 0 here and the other nodes follow in the file's order as customers
// 1..N, which is also how .sol files number customers: with the depot at node 1, customer i is
// the file's node i+1.
//
// VEHICLES is the number of vehicles, DISTANCE what a route's legs and services may take
// together, SERVICE_TIME what each customer takes. "No of trucks" in a comment limits nothing:
// CVRPLIB's best known costs are for a free number of routes. Trucks reads it, so that a user can
// be told.

// maxFile bounds what is read: an explicit matrix of 5,000 nodes is about 150 MB.
const maxFile = 512 << 20

func tooLarge(name string) error { return fmt.Errorf("%s: larger than %d MiB", name, maxFile>>20) }

// ReadVRPLIB reads a problem in CVRPLIB's .vrp format, TSPLIB's, or PyVRP's dialect of them. Errors
// begin with name and line.
func ReadVRPLIB(r io.Reader, name string, o Options) (*vrp.Problem, error) {
	data, err := io.ReadAll(lineEnds(io.LimitReader(r, maxFile+1)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, tooLarge(name)
	}
	if bad := notText(data); bad != "" {
		return nil, fmt.Errorf("%s: %s", name, bad)
	}
	v := &vrpFile{name: name, data: bytes.TrimPrefix(data, []byte("\ufeff")),
		keys: map[string]field{}, seen: map[string]int{}, tables: map[string][]tableRow{}}
	if err := v.parse(); err != nil {
		return nil, err
	}
	return v.problem(o)
}

// field is a header value and the line it stands on.
type field struct {
	value string
	line  int
}

// record is one line of a node section: a node's number and one or two values.
type record struct {
	id, line int
	x, y     float64
}

// vrpFile is a file as read, before its parts are put together: they may come in any order.
type vrpFile struct {
	name    string
	data    []byte // not yet read
	line    int    // number of the line last read
	text    string // that line, trimmed
	atEnd   bool
	ended   bool // by its EOF
	keys    map[string]field
	seen    map[string]int // the line of each section
	cut     string         // the section the file ended in, without a keyword after it
	coords  []record
	display []record
	demands []record
	service []record
	depots  []record
	weights []float64
	tables  map[string][]tableRow // sections of PyVRP's dialect
}

func (v *vrpFile) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", v.name, line, fmt.Sprintf(format, args...))
}

// next moves to the next line that is not blank; false at the end.
func (v *vrpFile) next() bool {
	for len(v.data) > 0 {
		line, rest, _ := bytes.Cut(v.data, []byte("\n"))
		v.data = rest
		v.line++
		if line = bytes.TrimSpace(line); len(line) > 0 {
			v.text = string(line)
			return true
		}
	}
	v.atEnd = true
	return false
}

func (v *vrpFile) parse() error {
	if !v.next() {
		return v.errorf(1, "the file is empty")
	}
	for !v.atEnd {
		key, value := splitKey(v.text)
		switch {
		case key == "EOF":
			v.ended = true
			return nil
		case strings.HasSuffix(key, "_SECTION"):
			if err := v.section(key, value); err != nil {
				return err
			}
			continue // a section stops on the line after it
		case key == "":
			return v.errorf(v.line, "%s: expected a keyword", quoteShort(v.text))
		case key == "ROUTE" || key == "COST":
			return v.errorf(v.line, "this is a solution (.sol), not a problem: give the .vrp file, and this one to haul check or with --start")
		}
		if err := v.header(key, value); err != nil {
			return err
		}
		v.next()
	}
	return nil
}

// keywords are those that stand before a colon.
var keywords = []string{"NAME", "COMMENT", "TYPE", "DIMENSION", "CAPACITY", "VEHICLES", "DISTANCE", "SERVICE_TIME", "EDGE_WEIGHT_TYPE",
	"EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE", "RELEASE_TIME", "VEHICLES_MAX_DISTANCE", "VEHICLES_MAX_DURATION",
	"VEHICLES_MAX_RELOADS", "VEHICLES_FIXED_COST", "VEHICLES_UNIT_DISTANCE_COST"}

func (v *vrpFile) header(key, value string) error {
	if !slices.Contains(keywords, key) {
		return v.errorf(v.line, "not supported: %s", quoteShort(key))
	}
	value = printable(unquote(value))
	switch key {
	case "TYPE", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE":
		value = strings.ToUpper(value)
	}
	if old, ok := v.keys[key]; ok {
		if key != "COMMENT" {
			return v.errorf(v.line, "%s is given twice, first on line %d", key, old.line)
		}
		value = old.value + " " + value
	}
	v.keys[key] = field{value, v.line}
	return nil
}

func (v *vrpFile) section(key, value string) error {
	if value != "" {
		return v.errorf(v.line, "unexpected %s after %s", quoteShort(value), key)
	}
	if first, ok := v.seen[key]; ok {
		return v.errorf(v.line, "%s is given twice, first on line %d", key, first)
	}
	v.seen[key] = v.line
	var err error
	switch key {
	case "NODE_COORD_SECTION":
		v.coords, err = v.records(key, "node x y")
	case "DISPLAY_DATA_SECTION":
		v.display, err = v.records(key, "node x y")
	case "LINEHAUL_SECTION":
		if first, ok := v.seen["DEMAND_SECTION"]; ok {
			return v.errorf(v.line, "LINEHAUL_SECTION says again what DEMAND_SECTION on line %d says", first)
		}
		v.seen["DEMAND_SECTION"] = v.line
		v.demands, err = v.records(key, "node demand")
	case "DEMAND_SECTION":
		v.demands, err = v.records(key, "node demand")
	case "SERVICE_TIME_SECTION":
		v.service, err = v.records(key, "node service")
	case "DEPOT_SECTION":
		err = v.depotSection()
	case "EDGE_WEIGHT_SECTION":
		err = v.weightSection()
	default:
		form, ok := tableSections[key]
		if !ok {
			return v.errorf(v.line, "not supported: %s", quoteShort(key))
		}
		v.tables[key], err = v.table(key, form)
	}
	if v.atEnd {
		v.cut = key
	}
	return err
}

// records reads lines of the stated form up to the next keyword.
func (v *vrpFile) records(key, form string) ([]record, error) {
	var list []record
	want := len(strings.Fields(form))
	for v.next() && isData(v.text) {
		f := strings.Fields(v.text)
		if len(f) != want {
			return nil, v.errorf(v.line, "%s: expected %q, found %s", key, form, quoteShort(v.text))
		}
		r := record{line: v.line}
		var err error
		if r.id, err = parseInt(f[0]); err != nil {
			return nil, v.errorf(v.line, "%s: node %s %v", key, quoteShort(f[0]), err)
		}
		if form == "node service" {
			if r.x, err = parseFloat(f[1]); err == nil && r.x < 0 {
				err = fmt.Errorf("is negative")
			}
			if err != nil {
				return nil, v.errorf(v.line, "service time %s of node %d %v", quoteShort(f[1]), r.id, err)
			}
		} else if want == 2 {
			d, err := parseInt(f[1])
			if err != nil {
				return nil, v.errorf(v.line, "demand %s of node %d %v", quoteShort(f[1]), r.id, err)
			}
			if r.x = float64(d); d < 0 {
				return nil, v.errorf(v.line, "demand %d of node %d is negative", d, r.id)
			}
		} else {
			for i, to := range [2]*float64{&r.x, &r.y} {
				if *to, err = parseFloat(f[i+1]); err != nil {
					return nil, v.errorf(v.line, "coordinate %s of node %d %v", quoteShort(f[i+1]), r.id, err)
				}
			}
		}
		list = append(list, r)
	}
	return list, nil
}

// depotSection reads node numbers up to -1.
func (v *vrpFile) depotSection() error {
	closed := false
	for v.next() && isData(v.text) {
		for _, f := range strings.Fields(v.text) {
			id, err := parseInt(f)
			switch {
			case err != nil:
				return v.errorf(v.line, "DEPOT_SECTION: node %s %v", quoteShort(f), err)
			case closed:
				return v.errorf(v.line, "DEPOT_SECTION: unexpected %s after -1", quoteShort(f))
			case id == -1:
				closed = true
			default:
				v.depots = append(v.depots, record{id: id, line: v.line})
			}
		}
	}
	if !closed && v.atEnd {
		return v.errorf(v.line, "the file ends inside DEPOT_SECTION, before its -1")
	}
	return nil
}

// weightSection reads numbers as they come; line breaks mean nothing to the format.
func (v *vrpFile) weightSection() error {
	for v.next() && isData(v.text) {
		for f := range strings.FieldsSeq(v.text) {
			w, err := parseFloat(f)
			if err == nil && w < 0 {
				err = fmt.Errorf("is negative")
			}
			if err != nil {
				return v.errorf(v.line, "EDGE_WEIGHT_SECTION: distance %s %v", quoteShort(f), err)
			}
			v.weights = append(v.weights, w)
		}
	}
	return nil
}

// splitKey cuts "KEY : value", "KEY: value" and "KEY value". The key comes back in capitals,
// empty when the line does not begin with one.
func splitKey(s string) (key, value string) {
	i := 0
	for i < len(s) && (s[i] == '_' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' || i > 0 && s[i] >= '0' && s[i] <= '9') {
		i++
	}
	if i < len(s) && s[i] != ':' && s[i] != ' ' && s[i] != '\t' {
		return "", ""
	}
	value = strings.TrimSpace(s[i:])
	value = strings.TrimSpace(strings.TrimPrefix(value, ":"))
	return strings.ToUpper(s[:i]), value
}

// lineBreaks makes one line of several: an address in a cell may have some.
var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// printable replaces what would move a terminal's cursor, change its colours or turn the direction
// of text. Lines become one, with a blank between them.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, lineBreaks.Replace(s))
}

// unquote drops one pair of quotes around a value.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// isData tells a line of numbers from a keyword; "nan" counts as a number, to be refused as one.
func isData(s string) bool {
	f, _, _ := strings.Cut(s, " ")
	f, _, _ = strings.Cut(f, "\t")
	key, _ := splitKey(f)
	if key == "" {
		return true
	}
	_, err := strconv.ParseFloat(f, 64)
	return err == nil
}

// parseInt reads an integer of 32 bits; "160.000" is one, 1.5 is not.
func parseInt(s string) (int, error) {
	x, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && math.IsInf(x, 0) || math.Abs(x) > math.MaxInt32:
		return 0, fmt.Errorf("is beyond 32 bits")
	case err != nil:
		return 0, fmt.Errorf("is not a number")
	case x != math.Trunc(x):
		return 0, fmt.Errorf("is not an integer")
	}
	return int(x), nil
}

// parseFloat reads a finite number no larger than 32-bit integers are, so that distances and
// their sums stay far from where float64 loses integers.
func parseFloat(s string) (float64, error) { return parseWithin(s, math.MaxInt32, "is beyond 32 bits") }

// parseWithin reads a finite number; one past most is told as beyond.
func parseWithin(s string, most float64, beyond string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	switch {
	case math.IsNaN(x) || err == nil && math.IsInf(x, 0):
		return 0, fmt.Errorf("is not finite")
	case err != nil && math.IsInf(x, 0) || math.Abs(x) > most:
		return 0, errors.New(beyond)
	case err != nil:
		return 0, fmt.Errorf("is not a number")
	}
	return x, nil
}

// notText says what a file is that cannot be read as text, by its first bytes, and what to do; ""
// for one that may be.
func notText(data []byte) string {
	switch start := data[:min(len(data), 512)]; {
	case bytes.HasPrefix(start, []byte{0xff, 0xfe}), bytes.HasPrefix(start, []byte{0xfe, 0xff}):
		return "this is text in UTF-16: save it as UTF-8"
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return "this is packed by gzip: unpack it first"
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return "this is an archive (.zip, .npz or .xlsx), not a text file"
	case bytes.IndexByte(start, 0) >= 0:
		return "this is not a text file"
	}
	return ""
}

// lineEnds reads a text whose lines may end in a carriage return alone, as old spreadsheets write
// them.
func lineEnds(r io.Reader) io.Reader { return lineEnder{bufio.NewReader(r)} }

type lineEnder struct{ in *bufio.Reader }

func (l lineEnder) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, c := range p[:n] {
		if c != '\r' {
			continue
		}
		next := p[i+1 : n]
		if len(next) == 0 {
			next, _ = l.in.Peek(1)
		}
		if len(next) == 0 || next[0] != '\n' {
			p[i] = '\n'
		}
	}
	return n, err
}

// quoteShort quotes what a file holds for an error, cut where it would flood the line.
func quoteShort(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "..."
	}
	return strconv.Quote(s)
}

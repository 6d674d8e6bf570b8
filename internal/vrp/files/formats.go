// Package files reads and writes the formats of routing problems and solutions, one source file
// per format.
//
// What a reader could break: a format honours what it reads or refuses it by name. A key that is
// read and dropped leads to routes that break a rule of the user's.
package files

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"haul/internal/limits"
	"haul/internal/vrp"
)

// The formats of problems. What a reader could break: the content of a file decides, not its
// name, and the first format of the table that recognises it reads it. VRPLIB, the last one,
// takes every other file and names what it does not know.

// Format is one of them.
type Format struct {
	Name       string
	Extensions []string                // of such files
	is         func(start []byte) bool // by its first bytes; nil: JSON, which jsonKind tells apart
	Read       func(r io.Reader, name string, o Options) (*vrp.Problem, error)
	Write      func(w io.Writer, p *vrp.Problem) error // nil: it is not written
}

// sniffed is how many first bytes tell a format.
const sniffed = headWithin

// Formats is the table of them.
var Formats = []Format{
	{"geojson", []string{".geojson"}, nil, readGeoJSON, nil},
	{"vroom", nil, nil, readVROOM, nil},
	{"json", []string{".json"}, nil, func(r io.Reader, name string, _ Options) (*vrp.Problem, error) { return ReadJSON(r, name) }, WriteJSON},
	{"xlsx", []string{".xlsx"}, isArchive, ReadTable, WriteXLSX},
	{"table", []string{".csv", ".tsv"}, IsTable, ReadTable, WriteTable},
	{"solomon", []string{".txt"}, isSolomon, ReadSolomon, WriteSolomon},
	{"lilim", []string{".txt"}, isLiLim, ReadLiLim, WriteLiLim},
	{"cordeau", []string{".txt"}, isCordeau, ReadCordeau, WriteCordeau},
	{"vrplib", []string{".vrp", ".tsp", ".atsp"}, func([]byte) bool { return true }, ReadVRPLIB, WriteProblem},
}

// ReadProblem reads a problem in any of the formats. Errors begin with name, and with the line
// where there is one. Options.Capacity is needed for tables alone.
func ReadProblem(r io.Reader, name string, o Options) (*vrp.Problem, error) {
	most := min(maxFile, o.Limits.Most(limits.File))
	in := bufio.NewReaderSize(io.LimitReader(r, most+1), sniffed)
	start, _ := in.Peek(sniffed)
	from := io.Reader(in)
	i := 0
	if LooksJSON(start) { // whose kind may show at its end
		text, err := io.ReadAll(io.LimitReader(in, most+1))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if int64(len(text)) > most {
			return nil, fmt.Errorf("%s: %w", name, o.Limits.Beyond(limits.File))
		}
		kind, problem := jsonKind(text)
		if kind == "plan" {
			if problem == nil {
				return nil, fmt.Errorf("%s has routes and not their problem: give the problem's own file", name)
			}
			kind, text = "json", problem
		}
		i, from = formatNamed(kind), bytes.NewReader(text)
	} else {
		i = slices.IndexFunc(Formats, func(f Format) bool { return f.is != nil && f.is(start) })
		if Formats[i].Name == "vrplib" && namesTable(name) && !bytes.Contains(start, []byte("DIMENSION")) {
			i = formatNamed("table") // none of its columns is known
		}
	}
	p, err := Formats[i].Read(from, name, o)
	if err != nil {
		return p, err
	}
	if err := p.Within(o.Limits); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if p.Name == "" && Formats[i].Name != "vrplib" {
		p.Name = nameOf(name)
	}
	if slices.Contains([]string{"geojson", "json", "xlsx", "table"}, Formats[i].Name) {
		o.Distance.Apply(p)
	} else {
		o.Distance.idle(p)
		o.Distance.blur(p)
	}
	return p, nil
}

func formatNamed(name string) int {
	return slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name })
}

// namesTable tells a table by the end of its name.
func namesTable(name string) bool {
	return slices.Contains([]string{".csv", ".tsv"}, strings.ToLower(filepath.Ext(name)))
}

// readVROOM reads the problem of VROOM's JSON, without what its answer needs.
func readVROOM(r io.Reader, name string, o Options) (*vrp.Problem, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	v, err := ReadVROOM(text, 0, o.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v.Problem, nil
}

// LoadProblem is ReadProblem from a file.
func LoadProblem(path string, o Options) (*vrp.Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadProblem(f, path, o)
}

// nameOf is a file's name without its folder and its ending.
func nameOf(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		name = name[:dot]
	}
	return name
}

// Distance says how Euclidean distances are rounded, whatever the file states. Explicit distances
// and those of GEO and ATT are unaffected.
type Distance string

// The distances. AsStated is what the file or its format says: EUC_2D is rounded, CEIL_2D rounded
// up; Solomon's, Li and Lim's and Cordeau's problems are exact.
const (
	AsStated        Distance = ""
	RoundedDistance Distance = "rounded" // as stated, and to the nearest integer where that is exact
	ExactDistance   Distance = "exact"   // not, or to a thousandth where times limit routes
	DimacsDistance  Distance = "dimacs"  // cut to one decimal
	CeilDistance    Distance = "ceil"    // up
	TruncDistance   Distance = "trunc"   // down
)

var distances = []Distance{RoundedDistance, ExactDistance, DimacsDistance, CeilDistance, TruncDistance}

// ParseDistance reads a distance's name; "" is AsStated.
func ParseDistance(s string) (Distance, error) {
	var names []string
	for _, d := range append([]Distance{AsStated}, distances...) {
		if d == Distance(s) {
			return d, nil
		}
		names = append(names, string(d))
	}
	return "", fmt.Errorf("unknown distance %s: use %s", quoteShort(s), strings.Join(names[1:], ", "))
}

// metric is a distance as a problem has it, stated where the file is to decide.
func (d Distance) metric(stated vrp.Metric) vrp.Metric {
	switch d {
	case RoundedDistance:
		if stated == vrp.Exact {
			return vrp.Rounded
		}
	case ExactDistance:
		return vrp.Exact
	case DimacsDistance:
		return vrp.Tenths
	case CeilDistance:
		return vrp.Ceil
	case TruncDistance:
		return vrp.Trunc
	}
	return stated
}

// Apply rounds the distances of a problem whose format does not round by itself. Where there is
// nothing to round, a note says so.
func (d Distance) Apply(p *vrp.Problem) {
	if d == AsStated || d.idle(p) {
		return
	}
	p.Metric = d.metric(p.Metric)
}

// idle tells whether a problem's distances stay what they are, and notes it.
func (d Distance) idle(p *vrp.Problem) bool {
	why := map[vrp.Metric]string{vrp.Explicit: "a matrix", vrp.GreatCircle: "great circles in metres", vrp.Geo: "TSPLIB's GEO", vrp.Att: "TSPLIB's ATT"}[p.Metric]
	if p.Profiles != nil {
		why = "a matrix"
	}
	if d != AsStated && why != "" {
		p.Notes = append(p.Notes, fmt.Sprintf("distance %s changes nothing: the distances are %s", d, why))
	}
	return why != ""
}

// blurred is the extent of a map below which whole numbers say little of its distances.
const blurred = 10

// blur notes that a file's own rounding leaves little of its distances: coordinates in the unit
// square are at most 1 apart then. Places on a grid lie where they do on purpose.
func (d Distance) blur(p *vrp.Problem) {
	if d != AsStated || p.X == nil || p.Metric != vrp.Rounded && p.Metric != vrp.Ceil && p.Metric != vrp.Trunc {
		return
	}
	whole := func(x float64) bool { return x == math.Trunc(x) }
	extent := max(slices.Max(p.X)-slices.Min(p.X), slices.Max(p.Y)-slices.Min(p.Y))
	if extent >= blurred || !slices.ContainsFunc(append(slices.Clone(p.X), p.Y...), func(x float64) bool { return !whole(x) }) {
		return
	}
	p.Notes = append(p.Notes, fmt.Sprintf("distances are rounded to whole numbers, and the map is %.3g wide: --distance exact keeps their digits", extent))
}

// settle rounds exact distances to a thousandth where times limit routes: PyVRP, the common referee
// of such problems, knows integers only and calls thousandths exact, and a route that is in time by
// less than the rounding of its legs would be late for one of the two.
func settle(p *vrp.Problem) {
	timed := p.Windows != nil || p.Release != nil
	for _, t := range p.Fleet {
		timed = timed || t.MaxDuration < 1e300 || t.MaxDistance < 1e300 || t.Shift != vrp.Always
	}
	if p.Metric == vrp.Exact && timed {
		p.Metric = vrp.Thousandths
	}
}

// Options says how a file is to be understood.
type Options struct {
	Distance Distance
	Limits   *limits.Set     // nil: those of the command line
	Context  context.Context // ends the reading of tables; nil: they are read to their end

	// Of tables alone.
	Capacity int32    // of a vehicle; 0: the table of vehicles says it
	Speed    float64  // km/h where distances are metres, else distance per unit of time; 0: not said
	Times    string   // what plain numbers of time count: minutes (or ""), seconds, hours
	Ignore   []string // columns that are not read, where the table of parts does not know them; "*": all
	// tables beside that of the customers; nil: sheets of the same file, or none
	Fleet, Depots, Shipments *Input
	Distances, Durations     *Input // .csv, .npy, or the answer of OSRM's or Valhalla's table service
}

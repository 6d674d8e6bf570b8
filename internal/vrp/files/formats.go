package files

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
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
func readVROOM(r io.Reader, name string, _ Options) (*vrp.Problem, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	v, err := ReadVROOM(text, 0)
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

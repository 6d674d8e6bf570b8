package testset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"haul/internal/pickle"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// Formats names the files that Load reads.
const Formats = ".npz, .pkl, .pt, a .vrp file or a folder of them"

// Load reads a set by its file's ending. In a folder of .vrp files a .sol beside each gives its
// reference cost.
func Load(path string, o files.Options) (*Set, error) {
	s, err := load(path, o)
	if err != nil {
		return nil, err
	}
	s.Name = path
	return s, nil
}

func load(path string, o files.Options) (*Set, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return loadFolder(path, o)
	}
	ext := strings.ToLower(filepath.Ext(path))
	if ext == ".vrp" {
		return loadFiles([]string{path}, o)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := read(f, st.Size(), ext)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if ext == ".pkl" || ext == ".pickle" {
		s.openByName(path)
	}
	return s, nil
}

// Read is Load of a single file's bytes, by the ending of its name.
func Read(f io.ReaderAt, size int64, ext string) (*Set, error) {
	return read(f, size, strings.ToLower(ext))
}

func read(f io.ReaderAt, size int64, ext string) (*Set, error) {
	switch ext {
	case ".npz":
		return readNPZ(f, size)
	case ".pt", ".pth":
		return readTorch(f, size)
	case ".pkl", ".pickle":
		data, err := readAll(f, size)
		if err != nil {
			return nil, err
		}
		return readPickle(data)
	}
	return nil, fmt.Errorf("instances are read from %s", Formats)
}

func readAll(f io.ReaderAt, size int64) ([]byte, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, min(size, maxFile)+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d MiB", maxFile>>20)
	}
	return data, err
}

func loadFolder(dir string, o files.Options) (*Set, error) {
	paths, err := filepath.Glob(filepath.Join(escape(dir), "*.vrp"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no .vrp files in this folder", dir)
	}
	slices.Sort(paths)
	return loadFiles(paths, o)
}

// escape keeps a folder's own name from being taken for a pattern.
func escape(dir string) string {
	var out strings.Builder
	for _, r := range dir {
		if strings.ContainsRune(`*?[\`, r) && !(r == '\\' && filepath.Separator == '\\') {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}

func loadFiles(paths []string, o files.Options) (*Set, error) {
	s := &Set{}
	var costs []float64
	for _, path := range paths {
		p, err := files.LoadProblem(path, o)
		if err != nil {
			return nil, err
		}
		p.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		s.Problems = append(s.Problems, p)
		beside := strings.TrimSuffix(path, filepath.Ext(path)) + ".sol"
		sol, _, err := files.LoadSolution(beside, p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := vrp.Validate(p, sol); err != nil {
			return nil, fmt.Errorf("%s is not a solution of %s to compare with: %w", beside, path, err)
		}
		costs = append(costs, p.Cost(sol))
	}
	if len(costs) == len(paths) {
		return s, s.refer("the .sol files beside them", costs)
	}
	return s, nil
}

// refer takes costs to compare with.
func (s *Set) refer(method string, costs []float64) error {
	for i, c := range costs {
		if !(c > 0 && c <= math.MaxFloat64) {
			return fmt.Errorf("the reference cost of instance %d is %g", i, c)
		}
	}
	s.Reference, s.Method = costs, method
	return nil
}

// LoadReference reads the costs to compare with from a file of their own: an .npz with an array
// reference, hgs or costs, a .pkl with a list of costs or of tuples that begin with one (as the
// results of Kool's code), a .csv with a column reference or cost, rows by the instances' names
// where it has a column name, or a text with a number per line. Costs may be of the set's first
// instances alone, as long as all that were kept are among them; more costs than the set has
// instances are another set's.
func (s *Set) LoadReference(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	costs, err := s.readReference(f, st.Size(), strings.ToLower(filepath.Ext(path)))
	if err == nil && len(costs) < len(s.Problems) {
		err = fmt.Errorf("%d costs for %d instances", len(costs), len(s.Problems))
	}
	if whole := max(s.whole, len(s.Problems)); err == nil && len(costs) > whole {
		err = fmt.Errorf("%d costs, and the set has %d instances: they are another set's", len(costs), whole)
	}
	if err == nil {
		err = s.refer(filepath.Base(path), costs[:len(s.Problems)])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (s *Set) readReference(f io.ReaderAt, size int64, ext string) ([]float64, error) {
	if ext == ".npz" {
		names := referenceNames
		if s.array != "" {
			names = append([]string{s.array}, names...)
		}
		a, err := readArrays(f, size, names)
		if err != nil {
			return nil, err
		}
		_, costs, ok := a.find(names)
		if !ok {
			return nil, fmt.Errorf("no array %s", strings.Join(names, ", "))
		}
		return costs.Data, nil
	}
	data, err := readAll(f, size)
	if err != nil {
		return nil, err
	}
	switch ext {
	case ".pkl", ".pickle":
		return pickledCosts(data)
	case ".csv":
		return s.costColumn(string(data))
	}
	var costs []float64
	at := 0
	for line := range strings.Lines(string(data)) {
		at++
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		c, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %.30q is no cost", at, text)
		}
		costs = append(costs, c)
	}
	return costs, nil
}

// pickledCosts reads costs, or tuples that begin with a cost, from a list, or from a tuple that
// begins with such a list.
func pickledCosts(data []byte) ([]float64, error) {
	v, err := pickle.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("not a pickle that can be read: %w", err)
	}
	if a, ok, err := pickle.NumPy(v); ok {
		return a.Data, err
	}
	items, ok := pickle.Items(v)
	if ok && len(items) > 0 {
		if t, isTuple := v.(pickle.Tuple); isTuple {
			if inner, ok := t[0].(*pickle.List); ok {
				items = inner.Items
			}
		}
	}
	var costs []float64
	for i, item := range items {
		if t, ok := pickle.Items(item); ok && len(t) > 0 {
			item = t[0]
		}
		c, ok := pickle.Number(item)
		if !ok {
			return nil, fmt.Errorf("item %d is no cost", i)
		}
		costs = append(costs, c)
	}
	return costs, nil
}

// costColumn reads the column reference or cost: by name where there is one, else in order.
func (s *Set) costColumn(text string) ([]float64, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("no header")
	}
	column := func(names ...string) int {
		for _, n := range names {
			if i := slices.IndexFunc(rows[0], func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), n) }); i >= 0 {
				return i
			}
		}
		return -1
	}
	at, name := column("reference", "hgs", "best", "cost"), column("name", "instance")
	if at < 0 {
		return nil, errors.New("no column reference, hgs, best or cost")
	}
	var order []float64
	byName := map[string]float64{}
	for i, row := range rows[1:] {
		c, err := strconv.ParseFloat(strings.TrimSpace(row[at]), 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %.30q is no cost", i+2, row[at])
		}
		order = append(order, c)
		if name >= 0 {
			byName[strings.TrimSuffix(strings.TrimSpace(row[name]), ".vrp")] = c
		}
	}
	if name < 0 {
		return order, nil
	}
	named := make([]float64, len(s.Problems))
	for i, p := range s.Problems {
		c, ok := byName[p.Name]
		if !ok {
			return nil, fmt.Errorf("no row for %s", p.Name)
		}
		named[i] = c
	}
	return named, nil
}

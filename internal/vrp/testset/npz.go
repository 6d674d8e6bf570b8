package testset

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"haul/internal/pickle"
	"haul/internal/vrp/files"
)

// Instances from NumPy's .npz files, as routing papers publish test sets. What a reader could
// break: sizes come from the arrays' own headers, and an array is only read where its header, the
// archive's entry and the limits agree.

// The names that arrays go by: Kool's and RL4CO's, then POMO's.
var (
	depotNames     = []string{"depot", "depot_xy"}
	locNames       = []string{"locs", "loc", "node_xy"}
	demandNames    = []string{"demand", "node_demand"}
	capacityNames  = []string{"capacity", "vehicle_capacity"}
	referenceNames = []string{"reference", "hgs", "costs", "cost"}
)

// arrays are a file's, by name.
type arrays map[string]pickle.Array

// find is the first of the names that the file has.
func (a arrays) find(names []string) (string, pickle.Array, bool) {
	for _, n := range names {
		if x, ok := a[n]; ok {
			return n, x, true
		}
	}
	return "", pickle.Array{}, false
}

// readNPZ reads depot [B,2], locs [B,N,2], demand [B,N], capacity [B], and costs [B] where they are
// known.
func readNPZ(r io.ReaderAt, size int64) (*Set, error) {
	a, err := readInstances(r, size, depotNames, locNames, demandNames, capacityNames, referenceNames)
	if err != nil {
		return nil, err
	}
	return a.set()
}

// readInstances reads the arrays of those names; others are passed over, unless they sound like a
// constraint.
func readInstances(r io.ReaderAt, size int64, wanted ...[]string) (arrays, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not an .npz file: %v", err)
	}
	for _, f := range z.File {
		if err := checkName(strings.TrimSuffix(f.Name, ".npy")); err != nil {
			return nil, err
		}
	}
	return readArrays(r, size, wanted...)
}

// readArrays reads the arrays of those names, and no others.
func readArrays(r io.ReaderAt, size int64, wanted ...[]string) (arrays, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not an .npz file: %v", err)
	}
	all, left := arrays{}, maxNumbers
	for _, names := range wanted {
		for _, name := range names {
			for _, f := range z.File {
				if f.Name != name+".npy" {
					continue
				}
				if all[name], err = readArray(f, left); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				left -= len(all[name].Data)
			}
		}
	}
	return all, nil
}

// checkName refuses an array that is not read and sounds like a constraint.
func checkName(name string) error {
	known := slices.ContainsFunc([][]string{depotNames, locNames, demandNames, capacityNames, referenceNames}, func(l []string) bool { return slices.Contains(l, name) })
	if !known && files.SoundsConstraining(name) {
		return fmt.Errorf("array %.40q sounds like a constraint and is not read: this set is of another problem than CVRP", name)
	}
	return nil
}

// set makes a set of arrays: the depot apart, or the first of locs where there is one more of them
// than of demands.
func (a arrays) set() (*Set, error) {
	name, locs, ok := a.find(locNames)
	if !ok || len(locs.Shape) != 3 || locs.Shape[2] != 2 {
		return nil, errors.New("no array locs of shape [instances, customers, 2]")
	}
	b, n := locs.Shape[0], locs.Shape[1]
	_, demand, ok := a.find(demandNames)
	if !ok || b == 0 || len(demand.Data)%b != 0 || len(demand.Data)/b != n && len(demand.Data)/b != n-1 {
		return nil, fmt.Errorf("no array demand of %d numbers beside %s of %d instances", n*b, name, b)
	}
	own := n - len(demand.Data)/b // 1: the depot is the first of locs
	_, depot, ok := a.find(depotNames)
	if ok && len(depot.Data) != 2*b || !ok && own == 0 {
		return nil, fmt.Errorf("no array depot of %d numbers beside %s of %d instances", 2*b, name, b)
	}
	_, capacity, stated := a.find(capacityNames)
	if stated && len(capacity.Data) != b && len(capacity.Data) != 1 {
		return nil, fmt.Errorf("no array capacity of %d numbers beside %s of %d instances", b, name, b)
	}
	all := make([]raw, b)
	for i := range all {
		r := &all[i]
		place := locs.Data[2*n*i:][:2*n]
		r.locs, r.demand = place[2*own:], demand.Data[(n-own)*i:][:n-own]
		if own == 1 {
			r.depot = [2]float64(place)
		}
		if ok {
			r.depot = [2]float64(depot.Data[2*i:])
		}
		if ok && own == 1 && r.depot != [2]float64(place) {
			return nil, fmt.Errorf("instance %d: %s has one place more than there are demands, and the first is not the depot", i, name)
		}
		switch {
		case stated && len(capacity.Data) == 1:
			r.capacity = capacity.Data[0]
		case stated:
			r.capacity = capacity.Data[i]
		}
	}
	s := &Set{}
	var err error
	if s.Problems, err = build(all); err != nil {
		return nil, err
	}
	if name, costs, ok := a.find(referenceNames); ok {
		if len(costs.Data) != b {
			return nil, fmt.Errorf("%s has %d numbers for %d instances", name, len(costs.Data), b)
		}
		return s, s.refer(name, costs.Data)
	}
	return s, nil
}

var npyHeader = regexp.MustCompile(`'descr':\s*'([<|=]?[fiu][1248])',\s*'fortran_order':\s*(False|True),\s*'shape':\s*\(([0-9, ]*)\)`)

// maxHeader bounds an array's header: NumPy's own limit.
const maxHeader = 10_000

// readArray reads one array of at most `most` numbers.
func readArray(f *zip.File, most int) (a pickle.Array, err error) {
	r, err := f.Open()
	if err != nil {
		return a, err
	}
	defer r.Close()
	in := bufio.NewReader(r)
	head, err := npyHead(in)
	if err != nil {
		return a, err
	}
	m := npyHeader.FindStringSubmatch(head)
	if m == nil {
		return a, fmt.Errorf("not supported: %.60q", head)
	}
	count := 1
	for s := range strings.FieldsFuncSeq(m[3], func(r rune) bool { return r == ',' || r == ' ' }) {
		k, err := strconv.Atoi(s)
		if err != nil || k > most || count*max(k, 1) > most {
			return a, fmt.Errorf("its shape is past the limit of %d numbers", maxNumbers)
		}
		a.Shape = append(a.Shape, k)
		count *= k
	}
	if m[2] == "True" && len(a.Shape) > 1 {
		return a, errors.New("an array in Fortran's order: save a copy made by numpy.ascontiguousarray")
	}
	kind := m[1][len(m[1])-2:]
	number, width, ok := pickle.Numbers(kind)
	if !ok {
		return a, fmt.Errorf("not supported: numbers of kind %s", kind)
	}
	body, err := io.ReadAll(io.LimitReader(in, int64(count*width)+1))
	if err != nil {
		return a, err
	}
	if len(body) != count*width {
		return a, fmt.Errorf("%d bytes or more for %d numbers of %d", len(body), count, width)
	}
	a.Data = make([]float64, count)
	for i := range a.Data {
		a.Data[i] = number(body[i*width:])
	}
	return a, nil
}

// npyHead reads an array's header.
func npyHead(in io.Reader) (string, error) {
	var fixed [12]byte
	if _, err := io.ReadFull(in, fixed[:8]); err != nil || string(fixed[:6]) != "\x93NUMPY" {
		return "", errors.New("not an array of NumPy's")
	}
	wide := 2
	if fixed[6] > 1 {
		wide = 4
	}
	if _, err := io.ReadFull(in, fixed[8:8+wide]); err != nil {
		return "", errors.New("its header is cut off")
	}
	size := binary.LittleEndian.Uint32(fixed[8:])
	if size > maxHeader {
		return "", fmt.Errorf("its header has %d bytes, %d at most", size, maxHeader)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return "", errors.New("its header is cut off")
	}
	return string(text), nil
}

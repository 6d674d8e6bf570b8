package cvrp

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Instances from NumPy's .npz files, as routing papers publish test sets. What a reader could break: sizes come from the
// arrays' own headers, and nothing is allocated before the bytes of an array were read.

// TestSet is instances with the costs that someone published for them.
type TestSet struct {
	Problems []*Problem
	HGS      []float64 // by instance; nil where the file has none
}

// LoadTestSet reads depot [B,2], locs [B,N,2], demand [B,N], capacity [B], and hgs [B] where there is one.
func LoadTestSet(path string) (*TestSet, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	set, err := ReadTestSet(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return set, nil
}

// ReadTestSet is LoadTestSet from any file.
func ReadTestSet(r io.ReaderAt, size int64) (*TestSet, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not an .npz file: %v", err)
	}
	arrays := map[string]npy{}
	for _, f := range z.File {
		a, err := readArray(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quoteShort(f.Name), err)
		}
		arrays[strings.TrimSuffix(f.Name, ".npy")] = a
	}
	locs, ok := arrays["locs"]
	if !ok || len(locs.shape) != 3 || locs.shape[2] != 2 {
		return nil, errors.New("no array locs of shape [instances, customers, 2]")
	}
	b, n := locs.shape[0], locs.shape[1]
	for _, want := range []struct {
		name string
		size int
	}{{"depot", 2 * b}, {"demand", n * b}, {"capacity", b}} {
		if a, ok := arrays[want.name]; !ok || len(a.data) != want.size {
			return nil, fmt.Errorf("no array %s of %d numbers beside locs of %d instances", want.name, want.size, b)
		}
	}
	set := &TestSet{}
	if hgs, ok := arrays["hgs"]; ok {
		if len(hgs.data) != b {
			return nil, fmt.Errorf("hgs has %d numbers for %d instances", len(hgs.data), b)
		}
		set.HGS = hgs.data
	}
	for i := range b {
		p := &Problem{Name: fmt.Sprintf("instance %d", i), Metric: Exact, X: []float64{arrays["depot"].data[2*i]}, Y: []float64{arrays["depot"].data[2*i+1]}, Demand: []int32{0}}
		whole := true
		int32Of := func(x float64) int32 {
			whole = whole && x == math.Trunc(x) && math.Abs(x) < math.MaxInt32
			return int32(x)
		}
		p.Capacity = int32Of(arrays["capacity"].data[i])
		for j := range n {
			p.X, p.Y = append(p.X, locs.data[(i*n+j)*2]), append(p.Y, locs.data[(i*n+j)*2+1])
			p.Demand = append(p.Demand, int32Of(arrays["demand"].data[i*n+j]))
		}
		if !whole {
			return nil, fmt.Errorf("instance %d: demands and capacities must be whole numbers", i)
		}
		if err := checkProblem(p); err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
		set.Problems = append(set.Problems, p)
	}
	return set, nil
}

// npy is one array, as float64 whatever it was.
type npy struct {
	shape []int
	data  []float64
}

var npyHeader = regexp.MustCompile(`'descr':\s*'([<|=]?[fiu][1248])',\s*'fortran_order':\s*False,\s*'shape':\s*\(([0-9, ]*)\)`)

func readArray(f *zip.File) (npy, error) {
	r, err := f.Open()
	if err != nil {
		return npy{}, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return npy{}, err
	}
	if len(data) < 12 || string(data[:6]) != "\x93NUMPY" {
		return npy{}, errors.New("not an array of NumPy's")
	}
	head, start := int(binary.LittleEndian.Uint16(data[8:])), 10
	if data[6] > 1 {
		head, start = int(binary.LittleEndian.Uint32(data[8:])), 12
	}
	if head < 0 || start+head > len(data) {
		return npy{}, errors.New("its header is cut off")
	}
	m := npyHeader.FindSubmatch(data[start : start+head])
	if m == nil {
		return npy{}, fmt.Errorf("not supported: %s", quoteShort(string(data[start:start+head])))
	}
	a := npy{}
	count := 1
	for f := range strings.FieldsFuncSeq(string(m[2]), func(r rune) bool { return r == ',' || r == ' ' }) {
		k, err := strconv.Atoi(f)
		if err != nil || k > len(data) || count*max(k, 1) > len(data) {
			return npy{}, errors.New("its shape is larger than the file")
		}
		a.shape = append(a.shape, k)
		count *= k
	}
	kind, width := m[1][len(m[1])-2], int(m[1][len(m[1])-1]-'0')
	body := data[start+head:]
	if len(body) != count*width {
		return npy{}, fmt.Errorf("%d bytes for %d numbers of %d", len(body), count, width)
	}
	a.data = make([]float64, count)
	for i := range a.data {
		x, ok := number(kind, body[i*width:(i+1)*width])
		if !ok {
			return npy{}, fmt.Errorf("not supported: numbers of kind %c%d", kind, width)
		}
		a.data[i] = x
	}
	return a, nil
}

func number(kind byte, b []byte) (float64, bool) {
	var u uint64
	for i, x := range b {
		u |= uint64(x) << (8 * i)
	}
	switch {
	case kind == 'f' && len(b) == 8:
		return math.Float64frombits(u), true
	case kind == 'f' && len(b) == 4:
		return float64(math.Float32frombits(uint32(u))), true
	case kind == 'i':
		shift := 64 - 8*len(b)
		return float64(int64(u<<shift) >> shift), true
	case kind == 'u':
		return float64(u), true
	}
	return 0, false
}

// Package npy reads NumPy's arrays as streams: .npy files of a folder, or the members of an .npz
// file, of any size, a stretch at a time.
//
// What a reader could break: sizes come from an array's own header and are judged before anything
// is allocated by them; nothing in a file is executed.
package npy

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"haul/internal/pickle"
)

// Set is arrays by name.
type Set struct {
	open  map[string]func() (io.ReadCloser, error)
	close func() error
}

// Open reads the names of an .npz file's or a folder's arrays.
func Open(path string) (*Set, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	s := &Set{open: map[string]func() (io.ReadCloser, error){}, close: func() error { return nil }}
	if info.IsDir() {
		files, err := filepath.Glob(filepath.Join(path, "*.npy"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			s.open[strings.TrimSuffix(filepath.Base(f), ".npy")] = func() (io.ReadCloser, error) { return os.Open(f) }
		}
		if len(files) == 0 {
			return nil, errors.New("this folder holds no .npy files")
		}
		return s, nil
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %v", kindOf(path), err)
	}
	s.close = z.Close
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if s.open[name] != nil {
			return nil, errors.Join(fmt.Errorf("it holds two arrays %s: which is meant cannot be told", name), z.Close())
		}
		s.open[name] = f.Open
	}
	return s, nil
}

// kindOf says what a file is that is no .npz file, by how it begins.
func kindOf(path string) string {
	var head [8]byte
	if f, err := os.Open(path); err == nil {
		n, _ := io.ReadFull(f, head[:])
		f.Close()
		switch begins := string(head[:n]); {
		case n == 0:
			return "the file is empty"
		case begins == "\x89HDF\r\n\x1a\n":
			return "an HDF5 file, which the Python package reads (haul.from_hdf5)"
		case strings.HasPrefix(begins, magic):
			return "a single array, where a folder of .npy files or an .npz file is wanted"
		case strings.HasPrefix(begins, "PK"):
			return "an .npz file that is cut short or damaged"
		}
	}
	return "neither a folder of .npy files nor an .npz file"
}

// Close closes the file; arrays that are open end with it.
func (s *Set) Close() error { return s.close() }

// Names are those of the arrays, in order.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.open)) }

// Array opens the first of these names that there is, at its first number. The error is
// fs.ErrNotExist where there is none.
func (s *Set) Array(names ...string) (*Array, error) {
	for _, n := range names {
		open, ok := s.open[n]
		if !ok {
			continue
		}
		r, err := open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		a, err := newArray(n, r)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", n, err), r.Close())
		}
		return a, nil
	}
	return nil, noArray{want: names, has: s.Names()}
}

// noArray says that none of these arrays is there. It is fs.ErrNotExist.
type noArray struct{ want, has []string }

func (e noArray) Error() string {
	const most = 12
	text := "no array " + strings.Join(e.want, " or ")
	switch {
	case len(e.has) == 0:
		return text + ": there are no arrays"
	case len(e.has) > most:
		return fmt.Sprintf("%s; there are %s and %d others", text, strings.Join(e.has[:most], ", "), len(e.has)-most)
	}
	return text + "; there are " + strings.Join(e.has, ", ")
}

func (noArray) Is(target error) bool { return target == fs.ErrNotExist }

// Read is the array of one .npy file, at its first number.
func Read(r io.Reader, name string) (*Array, error) { return newArray(name, io.NopCloser(r)) }

// Array is one array, read from its first number on.
type Array struct {
	Name  string
	Shape []int
	Float bool // its numbers are floating point

	file   io.Closer
	in     *bufio.Reader
	number func([]byte) float64
	width  int
	big    bool // big endian
	buf    []byte
	done   int64
	total  int64
}

const magic = "\x93NUMPY"

var header = regexp.MustCompile(`^\{'descr': '([<>|=]?[a-z][0-9])', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \}\s*$`)

// maxHeader bounds an array's header: NumPy's own limit.
const maxHeader = 10_000

func newArray(name string, r io.ReadCloser) (*Array, error) {
	a := &Array{Name: name, file: r, in: bufio.NewReaderSize(r, 1<<16)}
	text, err := a.head()
	if err != nil {
		return nil, err
	}
	m := header.FindStringSubmatch(text)
	if m == nil {
		return nil, notNumbers(text)
	}
	a.big = strings.HasPrefix(m[1], ">")
	total := int64(1)
	for s := range strings.FieldsFuncSeq(m[3], func(r rune) bool { return r == ',' || r == ' ' }) {
		k, err := strconv.Atoi(s)
		if err != nil || k > 0 && total > math.MaxInt64/8/int64(k) {
			return nil, fmt.Errorf("impossible shape (%s)", m[3])
		}
		a.Shape = append(a.Shape, k)
		total *= int64(k)
	}
	if m[2] == "True" && len(a.Shape) > 1 {
		return nil, errors.New("an array in Fortran's order: save a copy made by numpy.ascontiguousarray")
	}
	kind := m[1][len(m[1])-2:]
	var ok bool
	if a.number, a.width, ok = numbers(kind); !ok {
		return nil, notNumbers(text)
	}
	a.Float, a.total = kind[0] == 'f', total
	return a, nil
}

// described finds the type in a header that holds no plain numbers.
var described = regexp.MustCompile(`'descr': '[<>|=]?([a-zA-Z]\w*)`)

// notNumbers says what an array holds in place of numbers, and what to do.
func notNumbers(header string) error {
	m := described.FindStringSubmatch(header)
	if m == nil {
		return fmt.Errorf("not an array of plain numbers: %.60q", header)
	}
	switch kind := m[1]; {
	case kind[0] == 'U' || kind[0] == 'S' || kind[0] == 'a':
		return errors.New("it holds text: save a number for each word, as numpy.unique(x, return_inverse=True)[1] does")
	case kind[0] == 'O':
		return errors.New("it holds Python objects: save numbers, as numpy.asarray(x, dtype=float) makes them")
	case kind[0] == 'c':
		return errors.New("it holds complex numbers: save their parts as fields")
	case kind == "f16" || kind == "f12":
		return errors.New("it holds long doubles: save a copy made by .astype(float)")
	}
	return fmt.Errorf("not an array of plain numbers: %.60q", header)
}

// numbers decodes a kind of number; half precision is NumPy's f2, a truth value b1.
func numbers(kind string) (func([]byte) float64, int, bool) {
	switch kind {
	case "f2":
		return func(b []byte) float64 { return half(binary.LittleEndian.Uint16(b)) }, 2, true
	case "b1":
		return func(b []byte) float64 { return float64(min(b[0], 1)) }, 1, true
	}
	return pickle.Numbers(kind)
}

// half is a number in half precision.
func half(h uint16) float64 {
	sign, exp, frac := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// head reads an array's header.
func (a *Array) head() (string, error) {
	var fixed [12]byte
	if _, err := io.ReadFull(a.in, fixed[:8]); err != nil || string(fixed[:6]) != magic {
		return "", errors.New("not an array of NumPy's")
	}
	if fixed[6] < 1 || fixed[6] > 3 {
		return "", fmt.Errorf("it is of version %d.%d of NumPy's format, and 1 to 3 are read", fixed[6], fixed[7])
	}
	wide := 2
	if fixed[6] > 1 {
		wide = 4
	}
	if _, err := io.ReadFull(a.in, fixed[8:8+wide]); err != nil {
		return "", errors.New("its header is cut off")
	}
	size := binary.LittleEndian.Uint32(fixed[8:])
	if size > maxHeader {
		return "", fmt.Errorf("its header has %d bytes, %d at most", size, maxHeader)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(a.in, text); err != nil {
		return "", errors.New("its header is cut off")
	}
	return string(text), nil
}

// Axes is the shape as NumPy writes it: (), (5,), (5, 2).
func (a *Array) Axes() string {
	var text []string
	for _, k := range a.Shape {
		text = append(text, strconv.Itoa(k))
	}
	if len(text) == 1 {
		return "(" + text[0] + ",)"
	}
	return "(" + strings.Join(text, ", ") + ")"
}

// Rows is the length of the first axis.
func (a *Array) Rows() int {
	if len(a.Shape) == 0 {
		return 0
	}
	return a.Shape[0]
}

// Cols is the numbers of a row.
func (a *Array) Cols() int {
	n := 1
	for _, k := range a.Shape[min(1, len(a.Shape)):] {
		n *= k
	}
	return n
}

// Next reads the numbers that follow into dst. With the last of them it looks for the end: only
// there does a member of an .npz file tell whether its bytes are those that were saved.
func (a *Array) Next(dst []float64) error {
	if n := len(dst) * a.width; len(a.buf) < n {
		a.buf = make([]byte, n)
	}
	body := a.buf[:len(dst)*a.width]
	if n, err := io.ReadFull(a.in, body); err != nil {
		return fmt.Errorf("%s is cut short after %d numbers of the shape %s that its header names", a.Name, a.done+int64(n/a.width), a.Axes())
	}
	if a.big && a.width > 1 {
		for at := 0; at < len(body); at += a.width {
			slices.Reverse(body[at:][:a.width])
		}
	}
	for i := range dst {
		dst[i] = a.number(body[i*a.width:])
	}
	if a.done += int64(len(dst)); a.done < a.total {
		return nil
	}
	switch _, err := a.in.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%s goes on after the %d numbers that its header names: it is damaged", a.Name, a.total)
	case err != io.EOF:
		return fmt.Errorf("%s is damaged: %w", a.Name, err)
	}
	return nil
}

// Close closes the array.
func (a *Array) Close() error { return a.file.Close() }

package npy

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// array is an .npy file.
func array(kind, order, shape string, numbers []byte) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", kind, order, shape)
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)+1), 0)
	return append(append(append(out, head...), '\n'), numbers...)
}

func stored(t *testing.T, method uint16, name string, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
	if err != nil {
		t.Fatal(err)
	}
	w.Write(data)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.npz")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// whole reads an array in two stretches.
func whole(a *Array, err error) ([]float64, error) {
	if err != nil {
		return nil, err
	}
	out := make([]float64, a.Rows()*a.Cols())
	if err := a.Next(out[:len(out)/2]); err != nil {
		return nil, err
	}
	return out, a.Next(out[len(out)/2:])
}

// TestBothOrdersOfBytes: numbers are the same, whichever byte of them comes first.
func TestBothOrdersOfBytes(t *testing.T) {
	for kind, numbers := range map[string]any{"f8": []float64{1.5, -2, 3e-300, 0}, "f4": []float32{1.5, -2, 3e-30, 0}, "i8": []int64{-1, 258, 1 << 40, 0}, "i2": []int16{-1, 258, 0, 7}, "u1": []uint8{0, 255, 3, 4}} {
		var read [2][]float64
		for i, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			var body bytes.Buffer
			if err := binary.Write(&body, order.(binary.ByteOrder), numbers); err != nil {
				t.Fatal(err)
			}
			var err error
			if read[i], err = whole(Read(bytes.NewReader(array(string("<>"[i])+kind, "False", "4,", body.Bytes())), kind)); err != nil {
				t.Fatal(kind, err)
			}
		}
		if !slices.Equal(read[0], read[1]) || fmt.Sprint(read[0]) == fmt.Sprint(make([]float64, 4)) {
			t.Errorf("%s: %v and %v", kind, read[0], read[1])
		}
	}
}

// TestDamageIsNoticed: a member of an .npz file whose bytes are not those that were saved, and an
// array that goes on after its end, are refused with its last number.
func TestDamageIsNoticed(t *testing.T) {
	numbers := make([]byte, 64)
	for i := range numbers {
		numbers[i] = byte(i * 7)
	}
	good := array("|u1", "False", "64,", numbers)
	path := stored(t, zip.Store, "a", good)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) ([]float64, error) {
		s, err := Open(path)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		return whole(s.Array("a"))
	}
	if got, err := read(path); err != nil || got[5] != 35 {
		t.Fatal(got, err)
	}
	bad := bytes.Clone(data)
	bad[bytes.Index(data, numbers)+33] ^= 1
	if err := os.WriteFile(path, bad, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := read(path); err == nil || !strings.Contains(err.Error(), "a is damaged") {
		t.Errorf("one bit is another: %v", err)
	}
	if _, err := read(stored(t, zip.Deflate, "a", append(bytes.Clone(good), 0))); err == nil || !strings.Contains(err.Error(), "a goes on after the 64 numbers") {
		t.Errorf("a byte more: %v", err)
	}
	if _, err := read(stored(t, zip.Deflate, "a", good[:len(good)-1])); err == nil || !strings.Contains(err.Error(), "a is cut short after 63 numbers") {
		t.Errorf("a byte less: %v", err)
	}
}

// TestWhatHoldsNoNumbersIsNamed: one line that says what an array or a file is, and what to do.
func TestWhatHoldsNoNumbersIsNamed(t *testing.T) {
	for kind, want := range map[string]string{"<U4": "it holds text", "|S3": "it holds text", "|O": "Python objects", "<c16": "complex", "<c8": "complex", "<f16": "long doubles", "<M8[s]": "not an array of plain numbers"} {
		if _, err := Read(bytes.NewReader(array(kind, "False", "4,", nil)), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := Read(bytes.NewReader(array("<f8", "True", "2, 2", make([]byte, 32))), "x"); err == nil || !strings.Contains(err.Error(), "Fortran's order") {
		t.Error(err)
	}
	for head, want := range map[string]string{"\x89HDF\r\n\x1a\n...": "haul.from_hdf5", "\x93NUMPY\x01": "a single array", "PK\x03\x04": "cut short or damaged", "a,b\n": "neither a folder", "": "the file is empty"} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(head), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", head, err)
		}
	}
	s, err := Open(stored(t, zip.Store, "rewards", array("|u1", "False", "0,", nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Array("actions", "action"); !errors.Is(err, fs.ErrNotExist) || err.Error() != "no array actions or action; there are rewards" {
		t.Error(err)
	}
}

// TestArraysThatCannotBeTold: an .npz file with two arrays of one name, arrays of a later version
// of the format, and files that hold nothing are refused by what they are.
func TestArraysThatCannotBeTold(t *testing.T) {
	one := array("<f8", "False", "0,", nil)
	write := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var twice bytes.Buffer
	z := zip.NewWriter(&twice)
	for _, name := range []string{"a.npy", "b.npy", "a.npy"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(one)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{write("x.npz", twice.Bytes()): "two arrays a: which is meant", write("y.npz", nil): "the file is empty", t.TempDir(): "this folder holds no .npy files"} {
		if s, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %q", s, err, want)
		}
	}
	for version, want := range map[byte]string{0: "version 0.0", 4: "version 4.0", 9: "version 9.0 of NumPy's format, and 1 to 3 are read"} {
		data := bytes.Clone(one)
		data[6] = version
		if _, err := Read(bytes.NewReader(data), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAxes(t *testing.T) {
	for want, shape := range map[string][]int{"()": nil, "(5,)": {5}, "(5, 2)": {5, 2}, "(5, 8, 9)": {5, 8, 9}} {
		if got := (&Array{Shape: shape}).Axes(); got != want {
			t.Errorf("%v is written %s, want %s", shape, got, want)
		}
	}
}

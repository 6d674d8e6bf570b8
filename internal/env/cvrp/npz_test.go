package cvrp

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// archive writes arrays as numpy.savez does.
func archive(t testing.TB, arrays map[string]any, shapes map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range arrays {
		f, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		kind := map[string]string{"[]float64": "<f8", "[]float32": "<f4", "[]int64": "<i8", "[]int32": "<i4"}[fmt.Sprintf("%T", data)]
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", kind, shapes[name])
		fmt.Fprintf(f, "\x93NUMPY\x01\x00")
		if err := binary.Write(f, binary.LittleEndian, uint16(len(head))); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, head)
		if err := binary.Write(f, binary.LittleEndian, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func testSetArrays() (map[string]any, map[string]string) {
	return map[string]any{"depot": []float64{0, 0, 0.5, 0.5}, "locs": []float32{0.25, 0.5, 0.75, 1, 0, 0.125, 0.5, 0.25}, "demand": []int64{3, 4, 5, -0 + 6}, "capacity": []int32{9, 10}, "hgs": []float64{2.5, 1.5}},
		map[string]string{"depot": "2, 2", "locs": "2, 2, 2", "demand": "2, 2", "capacity": "2,", "hgs": "2,"}
}

func TestReadTestSet(t *testing.T) {
	arrays, shapes := testSetArrays()
	data := archive(t, arrays, shapes)
	set, err := ReadTestSet(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := &Problem{Name: "instance 1", Capacity: 10, Demand: []int32{0, 5, 6}, X: []float64{0.5, 0, 0.5}, Y: []float64{0.5, 0.125, 0.25}}
	if diff := cmp.Diff(want, set.Problems[1]) + cmp.Diff([]float64{2.5, 1.5}, set.HGS); diff != "" {
		t.Error(diff)
	}
}

func TestReadTestSetRefuses(t *testing.T) {
	for want, spoil := range map[string]func(map[string]any, map[string]string){
		"no array locs":        func(a map[string]any, _ map[string]string) { delete(a, "locs") },
		"no array capacity":    func(a map[string]any, _ map[string]string) { delete(a, "capacity") },
		"no array demand":      func(a map[string]any, s map[string]string) { a["demand"], s["demand"] = []int64{1}, "1," },
		"whole numbers":        func(a map[string]any, _ map[string]string) { a["demand"] = []float64{0.5, 1, 1, 1} },
		"over the capacity":    func(a map[string]any, _ map[string]string) { a["demand"] = []int64{1, 1, 99, 1} },
		"hgs has 1 numbers":    func(a map[string]any, s map[string]string) { a["hgs"], s["hgs"] = []float64{1}, "1," },
		"bytes for":            func(_ map[string]any, s map[string]string) { s["hgs"] = "3," },
		"larger than the file": func(_ map[string]any, s map[string]string) { s["hgs"] = "99999999999," },
	} {
		arrays, shapes := testSetArrays()
		spoil(arrays, shapes)
		data := archive(t, arrays, shapes)
		_, err := ReadTestSet(bytes.NewReader(data), int64(len(data)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func FuzzReadTestSet(f *testing.F) {
	arrays, shapes := testSetArrays()
	f.Add(archive(f, arrays, shapes))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := ReadTestSet(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		for _, p := range set.Problems {
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

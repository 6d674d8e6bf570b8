package testset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/limits/limitstest"
	"haul/internal/vrp"
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

func example() (map[string]any, map[string]string) {
	return map[string]any{"depot": []float64{0, 0, 0.5, 0.5}, "locs": []float32{0.25, 0.5, 0.75, 1, 0, 0.125, 0.5, 0.25}, "demand": []int64{3, 4, 5, 6}, "capacity": []int32{9, 10}, "hgs": []float64{2.5, 1.5}},
		map[string]string{"depot": "2, 2", "locs": "2, 2, 2", "demand": "2, 2", "capacity": "2,", "hgs": "2,"}
}

func readBytes(data []byte, ext string) (*Set, error) {
	return read(bytes.NewReader(data), int64(len(data)), ext)
}

var second = &vrp.Problem{Name: "instance-1", Capacity: 10, Demand: []int32{0, 5, 6}, X: []float64{0.5, 0, 0.5}, Y: []float64{0.5, 0.125, 0.25}}

func TestReadNPZ(t *testing.T) {
	arrays, shapes := example()
	set, err := readBytes(archive(t, arrays, shapes), ".npz")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(second, set.Problems[1]) + cmp.Diff([]float64{2.5, 1.5}, set.Reference); diff != "" || set.Method != "hgs" {
		t.Error(diff, set.Method)
	}
}

// TestNamesOfOthers: POMO's names, a depot that is the first place, one capacity for all, demands
// already divided by it.
func TestNamesOfOthers(t *testing.T) {
	for name, change := range map[string]func(map[string]any, map[string]string){
		"POMO's names": func(a map[string]any, s map[string]string) {
			for from, to := range map[string]string{"depot": "depot_xy", "locs": "node_xy", "demand": "node_demand"} {
				a[to], s[to] = a[from], s[from]
				delete(a, from)
			}
		},
		"the depot is the first place": func(a map[string]any, s map[string]string) {
			a["locs"], s["locs"] = []float64{0, 0, 0.25, 0.5, 0.75, 1, 0.5, 0.5, 0, 0.125, 0.5, 0.25}, "2, 3, 2"
			delete(a, "depot")
		},
		"divided, capacity stated": func(a map[string]any, _ map[string]string) {
			a["demand"] = []float32{float32(3) / 9, float32(4) / 9, 0.5, 0.6}
		},
		"divided, capacity beside": func(a map[string]any, s map[string]string) {
			a["demand"] = []float32{float32(3) / 9, float32(4) / 9, 0.5, 0.6}
			s["capacity"] = "2, 1"
		},
	} {
		arrays, shapes := example()
		change(arrays, shapes)
		set, err := readBytes(archive(t, arrays, shapes), ".npz")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(second, set.Problems[1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	// Without a capacity the smallest that makes all demands whole is taken: the same problem.
	arrays, shapes := example()
	arrays["demand"] = []float32{float32(3) / 50, float32(4) / 50, float32(5) / 50, float32(9) / 50}
	delete(arrays, "capacity")
	set, err := readBytes(archive(t, arrays, shapes), ".npz")
	if err != nil || set.Problems[1].Capacity != 50 || set.Problems[1].Demand[2] != 9 {
		t.Errorf("%v, %v", set, err)
	}
}

func TestReadNPZRefuses(t *testing.T) {
	for want, spoil := range map[string]func(map[string]any, map[string]string){
		"no array locs":       func(a map[string]any, _ map[string]string) { delete(a, "locs") },
		"no array depot":      func(a map[string]any, _ map[string]string) { delete(a, "depot") },
		"no array capacity":   func(a map[string]any, s map[string]string) { a["capacity"], s["capacity"] = []int64{1, 2, 3}, "3," },
		"no capacity":         func(a map[string]any, _ map[string]string) { delete(a, "capacity") },
		"no array demand":     func(a map[string]any, s map[string]string) { a["demand"], s["demand"] = []int64{1}, "1," },
		"neither whole":       func(a map[string]any, _ map[string]string) { a["demand"] = []float64{0.5, 1, 2, 1} },
		"fractions of no":     func(a map[string]any, _ map[string]string) { a["demand"] = []float64{math.Pi / 4, math.E / 3, 1, 1} },
		"over the capacity":   func(a map[string]any, _ map[string]string) { a["demand"] = []int64{1, 1, 99, 1} },
		"is negative":         func(a map[string]any, _ map[string]string) { a["demand"] = []int64{1, -1, 1, 1} },
		"customer 2 is NaN":   func(a map[string]any, _ map[string]string) { a["demand"] = []float64{1, math.NaN(), 1, 1} },
		"the capacity is NaN": func(a map[string]any, _ map[string]string) { a["capacity"] = []float64{9, math.NaN()} },
		"whole number":        func(a map[string]any, _ map[string]string) { a["capacity"] = []float64{9, 9.5} },
		"(NaN, 0.125)": func(a map[string]any, _ map[string]string) {
			a["locs"] = []float64{0.25, 0.5, 0.75, 1, math.NaN(), 0.125, 0.5, 0.25}
		},
		"hgs has 1 numbers":         func(a map[string]any, s map[string]string) { a["hgs"], s["hgs"] = []float64{1}, "1," },
		"cost of instance 1 is NaN": func(a map[string]any, _ map[string]string) { a["hgs"] = []float64{1, math.NaN()} },
		"bytes or more for":         func(_ map[string]any, s map[string]string) { s["hgs"] = "3," },
		"past the limit":            func(_ map[string]any, s map[string]string) { s["hgs"] = "99999999999," },
		"no customers": func(a map[string]any, s map[string]string) {
			a["locs"], s["locs"], a["demand"], s["demand"] = []float64{}, "2, 0, 2", []int64{}, "2, 0"
		},
	} {
		arrays, shapes := example()
		spoil(arrays, shapes)
		_, err := readBytes(archive(t, arrays, shapes), ".npz")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestBombIsNotUnpacked: an entry that unpacks to more than its header says is left alone.
func TestBombIsNotUnpacked(t *testing.T) {
	arrays, shapes := example()
	arrays["locs"] = make([]float64, 1<<23)
	data := archive(t, arrays, shapes)
	if len(data) > 1<<20 {
		t.Fatal("no bomb")
	}
	if _, err := readBytes(data, ".npz"); err == nil || !strings.Contains(err.Error(), "65 bytes or more for 8 numbers of 8") {
		t.Error(err)
	}
}

func FuzzReadNPZ(f *testing.F) {
	arrays, shapes := example()
	f.Add(archive(f, arrays, shapes))
	fuzzSet(f, ".npz")
}

// fuzzSet holds a reader to one line per refusal, and to problems that can be solved.
func fuzzSet(f *testing.F, ext string) {
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			set, err := readBytes(data, ext)
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
		}, data)
	})
}

// TestConstraintsOfASetAreNotDropped: an array that limits routes is refused by its name.
func TestConstraintsOfASetAreNotDropped(t *testing.T) {
	for name, refused := range map[string]bool{"time_windows": true, "distance_limit": true, "demand_linehaul": true, "open_route": true, "tags": false} {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		f, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if err := writeArray(f, "<f8", []float64{1}, []int{1}); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = readNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if got := strings.Contains(err.Error(), "sounds like a constraint"); got != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReferencesOfManySets: a file with the costs of several sets gives a set its own, and says so
// where it has too few.
func TestReferencesOfManySets(t *testing.T) {
	s, err := RouteFinder("vrptw", 50)
	if err != nil {
		t.Fatal(err)
	}
	s.Cut(0, 2)
	path := filepath.Join(t.TempDir(), "costs.npz")
	data := archive(t, map[string]any{"vrptw_50": []float32{1.5, 2.5}, "mdovrpbltw_100": []float32{9, 9}}, map[string]string{"vrptw_50": "2,", "mdovrpbltw_100": "2,"})
	save(t, path, string(data))
	if err := s.LoadReference(path); err != nil || s.Reference[1] != 2.5 {
		t.Errorf("%v, %v", s.Reference, err)
	}
	whole, err := RouteFinder("vrptw", 50)
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.LoadReference(path); err == nil || !strings.Contains(err.Error(), "2 costs for 1000 instances") {
		t.Errorf("too few costs: %v", err)
	}
	other, err := RouteFinder("vrptw", 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.LoadReference(path); err == nil || !strings.Contains(err.Error(), "no array vrptw_100") {
		t.Errorf("costs of another size: %v", err)
	}
}

// Fortran's order of a list is its order; of a matrix it is another, and refused.
func TestFortransOrder(t *testing.T) {
	for shape, ok := range map[string]bool{"4,": true, "2, 2": false, "2, 1, 2": false} {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		f, err := z.Create("a.npy")
		if err != nil {
			t.Fatal(err)
		}
		head := fmt.Sprintf("{'descr': '<f8', 'fortran_order': True, 'shape': (%s), }\n", shape)
		fmt.Fprintf(f, "\x93NUMPY\x01\x00%s%s%s", []byte{byte(len(head)), 0}, head, make([]byte, 32))
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readArray(r.File[0], 100); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "Fortran") {
			t.Errorf("shape (%s): %v", shape, err)
		}
	}
}

package testset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/pickle"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// TestKool: the check values are NumPy's; scripts/kool_numpy.py prints them.
func TestKool(t *testing.T) {
	for customers, sum := range map[int]int{20: 999_780, 50: 2_500_179, 100: 5_000_827} {
		s, err := Kool(customers, Test)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, p := range s.Problems {
			for _, d := range p.Demand {
				got += int(d)
			}
		}
		first := s.Problems[0]
		if len(s.Problems) != 10_000 || got != sum || first.X[0] != 0.1915194503788923 || first.Y[0] != 0.6221087710398319 {
			t.Errorf("%d customers: %d instances, demands %d, depot (%v, %v)", customers, len(s.Problems), got, first.X[0], first.Y[0])
		}
		if customers != 100 {
			continue
		}
		if first.X[1] != 0.5542693865183056 || first.Y[1] != 0.1809782379192011 {
			t.Errorf("the first customer is at (%v, %v)", first.X[1], first.Y[1])
		}
		if diff := cmp.Diff([]int32{0, 1, 3, 1, 4, 4, 1, 6, 3, 6, 2}, first.Demand[:11]); diff != "" || first.Capacity != 50 {
			t.Error(diff, first.Capacity)
		}
	}
	large, err := Kool(1000, Test)
	if err != nil {
		t.Fatal(err)
	}
	if p := large.Problems[99]; p.Y[1000] != 0.4683720475009375 || p.Demand[1000] != 9 || p.Capacity != 200 || large.Published != 0 {
		t.Errorf("1,000 customers: instance 99 ends at y %v with demand %d, capacity %d", p.Y[1000], p.Demand[1000], p.Capacity)
	}
	for customers, capacity := range map[int]int32{200: 80, 500: 100} {
		s, err := Kool(customers, Test)
		if err != nil {
			t.Fatal(err)
		}
		// The draws behind the depots are one stream: customer c of instance i is draw i*N+c of it.
		a, b := s.Problems[0], large.Problems[0]
		if a.Capacity != capacity || a.X[customers] != b.X[customers] || s.Problems[1].Y[1] != b.Y[customers+1] {
			t.Errorf("%d customers: capacity %d, the last customer at x %v, the next instance's first at y %v", customers, a.Capacity, a.X[customers], s.Problems[1].Y[1])
		}
	}
	v, err := Kool(20, Validation)
	if err != nil || v.Problems[0].X[0] == 0.1915194503788923 || v.Published != 0 {
		t.Errorf("validation: %v", err)
	}
	if _, err := Kool(33, Test); err == nil {
		t.Error("a set of 33 customers was made")
	}
	if _, err := Kool(20, "train"); err == nil {
		t.Error("a set for training was made")
	}
}

// TestWrittenSetsAreReadBack: every digit, by every format.
func TestWrittenSetsAreReadBack(t *testing.T) {
	s, err := Kool(10, Test)
	if err != nil {
		t.Fatal(err)
	}
	s.Cut(0, 20)
	for _, ext := range []string{".npz", ".pkl"} {
		var b bytes.Buffer
		if err := Write(&b, ext, s.Problems); err != nil {
			t.Fatal(err)
		}
		back, err := readBytes(b.Bytes(), ext)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range back.Problems {
			p.Name = s.Problems[i].Name
		}
		if diff := cmp.Diff(s.Problems, back.Problems); diff != "" {
			t.Errorf("%s: %s", ext, diff)
		}
	}
	dir := t.TempDir()
	for _, p := range s.Problems[:2] {
		var b bytes.Buffer
		if err := files.WriteProblem(&b, FileProblem(p)); err != nil {
			t.Fatal(err)
		}
		save(t, filepath.Join(dir, p.Name+".vrp"), b.String())
	}
	back, err := Load(dir, files.Options{Distance: files.ExactDistance})
	if err != nil {
		t.Fatal(err)
	}
	scale, ok := back.Problems[1].Scale()
	if p := back.Problems[1]; !ok || scale != 1_000_000 || p.Name != "kool-10-test-1" || int(p.X[3]) != int(s.Problems[1].X[3]*1e6+0.5) {
		t.Errorf("%v", p)
	}
	single := *s.Problems[1]
	single.Name, single.Vehicles = "", 1
	if err := Write(io.Discard, ".npz", []*vrp.Problem{s.Problems[0], &single}); err == nil || !strings.HasPrefix(err.Error(), "instance 1 cannot be written as .npz") {
		t.Errorf("an instance without a name that an array has no place for: %v", err)
	}
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fixture is one of the pickles that Python made.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "pickle", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReadPickle(t *testing.T) {
	for protocol := range 6 {
		set, err := readBytes(fixture(t, fmt.Sprintf("plain-%d.pkl", protocol)), ".pkl")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(second.X, set.Problems[1].X) + cmp.Diff(second.Demand, set.Problems[1].Demand); diff != "" {
			t.Error(diff)
		}
		for _, name := range []string{"arrays", "mixed"} {
			set, err := readBytes(fixture(t, fmt.Sprintf("%s-%d.pkl", name, protocol)), ".pkl")
			if err != nil {
				t.Fatal(name, err)
			}
			if p := set.Problems[0]; p.Capacity != 9 || p.X[1] != 0.75 || p.Demand[2] != 4 {
				t.Errorf("%s, protocol %d: %v", name, protocol, p)
			}
		}
		if _, err := readBytes(fixture(t, fmt.Sprintf("hostile-%d.pkl", protocol)), ".pkl"); err == nil || !strings.Contains(err.Error(), "posix.system") {
			t.Error(err)
		}
	}
	for want, text := range map[string]string{
		"no list of instances":  "N.",
		"no instances":          "].",
		"expected a depot":      "](Ne.",
		"depot is not two":      "]((NNNNte.",
		"capacity is no number": "]((](G\x00\x00\x00\x00\x00\x00\x00\x00G\x00\x00\x00\x00\x00\x00\x00\x00e]]Nte.",
		"no customers":          "]((](G\x00\x00\x00\x00\x00\x00\x00\x00G\x00\x00\x00\x00\x00\x00\x00\x00e]]K\x01te.",
		"not a pickle that can": "x",
		"never called":          "cos\nsystem\n.",
	} {
		if _, err := readBytes([]byte(text), ".pkl"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v", text, want, err)
		}
	}
}

// TestSharedListsAreCounted: a short pickle that names one long list a million times is refused,
// not unfolded.
func TestSharedListsAreCounted(t *testing.T) {
	row := "](" + strings.Repeat("K\x01", 4000) + "e"
	text := "]((](K\x00K\x00e](" + row + "q\x00" + strings.Repeat("h\x00", 20_000) + "e](K\x01eK\x01te."
	if _, err := readBytes([]byte(text), ".pkl"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}

// TestSharedArraysAreCounted: the same of an array of NumPy's, which is unfolded anew wherever it
// is named.
func TestSharedArraysAreCounted(t *testing.T) {
	dtype := &pickle.Call{What: pickle.Global{Module: "numpy", Name: "dtype"}, Args: pickle.Tuple{"u1"}}
	array := &pickle.Call{What: pickle.Global{Module: "numpy._core.numeric", Name: "_frombuffer"},
		Args: pickle.Tuple{[]byte{1, 2, 3}, dtype, pickle.Tuple{int64(3)}, "C"}}
	left := 7
	for i := range 3 {
		if _, err := numbers(array, &left); (err != nil) != (i == 2) {
			t.Errorf("array %d: %v", i, err)
		}
	}
}

// torchFile writes tensors as torch.save does: POMO's names, demands divided by the capacity.
func torchFile(t testing.TB, stride string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	put := func(name string, data any) {
		f, err := z.Create("test/" + name)
		if err == nil {
			err = binary.Write(f, binary.LittleEndian, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tensor := func(name, key string, shape, by string, count int) string {
		return fmt.Sprintf("X%c\x00\x00\x00%sctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00%sX\x03\x00\x00\x00cpuK%ctQK\x00%s%s\x89ccollections\nOrderedDict\n)RtR",
			len(name), name, key, count, shape, by)
	}
	put("data.pkl", []byte("\x80\x02}("+tensor("depot_xy", "0", "K\x01K\x01K\x02\x87", "K\x02K\x02K\x01\x87", 2)+
		tensor("node_xy", "1", "K\x01K\x02K\x02\x87", stride, 4)+tensor("node_demand", "2", "K\x01K\x02\x86", "K\x02K\x01\x86", 2)+"u."))
	put("byteorder", []byte("little"))
	put("data/0", []float32{0.5, 0.25})
	put("data/1", []float32{0.125, 0.25, 0.5, 0.75})
	put("data/2", []float32{float32(3) / 40, float32(9) / 40})
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadTorch(t *testing.T) {
	set, err := readBytes(torchFile(t, "K\x04K\x02K\x01\x87"), ".pt")
	if err != nil {
		t.Fatal(err)
	}
	want := &vrp.Problem{Name: "instance-0", Capacity: 40, Demand: []int32{0, 3, 9}, X: []float64{0.5, 0.125, 0.5}, Y: []float64{0.25, 0.25, 0.75}}
	if diff := cmp.Diff(want, set.Problems[0]); diff != "" {
		t.Error(diff)
	}
	if _, err := readBytes(torchFile(t, "K\x04K\x01K\x02\x87"), ".pt"); err == nil || !strings.Contains(err.Error(), "a view") {
		t.Error(err)
	}
}

func TestReferencesOfAnotherFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.csv": "name,cost\ninstance-1,7.5\ninstance-0,6.5\n",
		"b.csv": "x,Reference\n1,6.5\n2,7.5\n",
		"c.txt": "6.5\n\n7.5\n",
		"d.pkl": string(fixture(t, "results-4.pkl")),
	} {
		save(t, filepath.Join(dir, name), text)
		set := &Set{Problems: []*vrp.Problem{{Name: "instance-0"}, {Name: "instance-1"}}}
		if err := set.LoadReference(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		} else if diff := cmp.Diff([]float64{6.5, 7.5}, set.Reference); diff != "" || set.Method != name {
			t.Error(name, diff, set.Method)
		}
	}
	save(t, filepath.Join(dir, "bad.txt"), "6.5\n\nx\n")
	set := &Set{Problems: []*vrp.Problem{{Name: "instance-0"}}}
	if err := set.LoadReference(filepath.Join(dir, "bad.txt")); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Error(err)
	}
	for want, text := range map[string]string{"no column": "a,b\n1,2\n", "is no cost": "cost\nx\n", "1 costs for 2": "cost\n1\n", "no row for instance-1": "name,cost\ninstance-0,1\n", "instance 1 is -1": "cost\n1\n-1\n",
		"no row for instance-0": "name,cost\nA-n32-k5,784\nA-n33-k5,661\n", "3 costs, and the set has 2 instances: they are another set's": "cost\n1\n2\n3\n"} {
		save(t, filepath.Join(dir, "bad.csv"), text)
		set := &Set{Problems: []*vrp.Problem{{Name: "instance-0"}, {Name: "instance-1"}}}
		if err := set.LoadReference(filepath.Join(dir, "bad.csv")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestReferencesOfTheFirst: costs of the first instances serve as long as none that was kept is
// past them; as many as the whole set has are its own, one more is another set's.
func TestReferencesOfTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.txt")
	for costs, want := range map[string]string{
		"1\n":                "1 costs for 2 instances",
		"1\n2\n":             "",
		"1\n2\n3\n4\n5\n":    "",
		"1\n2\n3\n4\n5\n6\n": "6 costs, and the set has 5 instances",
	} {
		save(t, path, costs)
		set := &Set{}
		for range 5 {
			set.Problems = append(set.Problems, &vrp.Problem{})
		}
		set.Cut(0, 2)
		err := set.LoadReference(path)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v, want %q", costs, err, want)
		}
		if set.Cut(1, 1); err == nil && (len(set.Reference) != 1 || set.Reference[0] != 2) {
			t.Errorf("%q: the second costs %v", costs, set.Reference)
		}
	}
}

func FuzzReadPickle(f *testing.F) {
	for protocol := range 6 {
		for _, name := range []string{"plain", "arrays", "mixed", "hostile"} {
			f.Add(fixture(f, fmt.Sprintf("%s-%d.pkl", name, protocol)))
		}
	}
	fuzzSet(f, ".pkl")
}

func FuzzReadTorch(f *testing.F) {
	f.Add(torchFile(f, "K\x04K\x02K\x01\x87"))
	fuzzSet(f, ".pt")
}

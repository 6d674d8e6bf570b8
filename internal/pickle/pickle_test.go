package pickle

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/limits/limitstest"
)

// files reads the pickles of that name, one for each protocol; testdata/make.py makes them.
func files(t testing.TB, name string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for protocol := range 6 {
		path := filepath.Join("testdata", fmt.Sprintf("%s-%d.pkl", name, protocol))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = data
	}
	return out
}

func decode(t *testing.T, path string, data []byte) any {
	t.Helper()
	v, err := Decode(data)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

func TestPlainDataOfEveryProtocol(t *testing.T) {
	list := func(v ...any) *List { return &List{v} }
	want := list(
		Tuple{list(0.25, 0.5), list(list(0.75, 1.0), list(0.0, 0.125)), list(int64(3), int64(4)), 9.0},
		Tuple{list(0.5, 0.5), list(list(0.0, 0.125), list(0.5, 0.25)), list(int64(5), int64(6)), 10.0})
	for path, data := range files(t, "plain") {
		if diff := cmp.Diff(want, decode(t, path, data)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	scalars := list(true, false, nil, int64(-1), int64(255), int64(65535), int64(-1<<31), int64(1<<40), int64(-1<<63), 1e300, "text", "é€\n",
		[]byte{0, 255}, Tuple{}, &Dict{}, &Dict{[]any{"a"}, []any{Tuple{int64(1), int64(2), int64(3), int64(4)}}})
	for path, data := range files(t, "scalars") {
		if diff := cmp.Diff(scalars, decode(t, path, data)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestArraysOfEveryProtocol(t *testing.T) {
	want := map[string]Array{"depot": {[]int{1, 2}, []float64{0.25, 0.5}}, "locs": {[]int{1, 2, 2}, []float64{0.75, 1, 0, 0.125}},
		"demand": {[]int{1, 2}, []float64{3, 4}}, "capacity": {[]int{1}, []float64{9}}}
	for path, data := range files(t, "arrays") {
		d := decode(t, path, data).(*Dict)
		for name, want := range want {
			v, _ := d.Get(name)
			got, ok, err := NumPy(v)
			if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
				t.Errorf("%s, %s: %v %v %s", path, name, ok, err, diff)
			}
		}
	}
	for path, data := range files(t, "mixed") {
		capacity := decode(t, path, data).(*List).Items[0].(Tuple)[3]
		if x, ok := Number(capacity); !ok || x != 9 {
			t.Errorf("%s: a scalar of NumPy's is %v", path, capacity)
		}
	}
}

// TestNothingIsExecuted: os.system is refused by its name, whatever the protocol.
func TestNothingIsExecuted(t *testing.T) {
	for path, data := range files(t, "hostile") {
		_, err := Decode(data)
		if err == nil || !strings.Contains(err.Error(), `"posix.system"`) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat("it-ran"); err == nil {
		t.Error("it ran")
	}
}

func TestRefused(t *testing.T) {
	for want, data := range map[string]string{
		"ends in the middle":             "\x80\x02]q",
		"protocol 9":                     "\x80\x09N.",
		"not there":                      "\x80\x02.",
		"a mark is used":                 "e.",
		"no list":                        "NK\x01a.",
		"is repeated before it was kept": "h\x07.",
		"instruction 0xff":               "\xff.",
		"instruction 0x82":               "\x82\x01.",       // EXT1: a name by number
		"instruction 0x69":               "(ios\nsystem\n.", // INST: a name and a call in one
		"more than 64 bits":              "\x8a\x09" + strings.Repeat("\x01", 9) + ".",
		"no plain string":                "S'a\\x00'\n.",
		"the state of what has none":     "N}b.",
		"calls what is no known":         "N)R.",
		"a name that is no text":         "NN\x93.",
		"a key without a value":          "(Nd.",
		"is no number":                   "Fnope\n.",
		"names \"builtins.eval\"":        "cbuiltins\neval\n.",
		"is used that is not":            "(0.",
	} {
		_, err := Decode([]byte(data))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v", data, want, err)
		}
	}
}

// TestSizesAreNotBelieved: a length or a shape past the file is refused before anything is
// allocated by it.
func TestSizesAreNotBelieved(t *testing.T) {
	for _, data := range []string{"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "B\xff\xff\xff\x7f.", "\x8d\x00\x00\x00\x00\x01\x00\x00\x00."} {
		if _, err := Decode([]byte(data)); err == nil {
			t.Errorf("%q was read", data)
		}
	}
	huge := &Call{What: Global{"numpy.core.multiarray", "_reconstruct"}, State: Tuple{int64(1), Tuple{int64(1 << 40), int64(1 << 40)},
		&Call{What: Global{"numpy", "dtype"}, Args: Tuple{"f8"}}, false, []byte{1}}}
	if _, ok, err := NumPy(huge); !ok || err == nil {
		t.Error("an array of 2^80 numbers in one byte was read")
	}
}

// TestRepeatedBytesAreCounted: a text that is kept once and turned into bytes again and again would
// take its size each time.
func TestRepeatedBytesAreCounted(t *testing.T) {
	const once = "c_codecs\nencode\nq\x00X\xe8\x03\x00\x00"
	head := "](" + once + strings.Repeat("a", 1000) + "q\x01X\x06\x00\x00\x00latin1q\x02\x86R"
	if _, err := Decode([]byte(head + "e.")); err != nil {
		t.Fatal(err)
	}
	if _, err := Decode([]byte(head + strings.Repeat("h\x00h\x01h\x02\x86R", 100) + "e.")); err == nil || !strings.Contains(err.Error(), "more bytes") {
		t.Error(err)
	}
}

func TestEncode(t *testing.T) {
	var b bytes.Buffer
	if err := Encode(&b, []any{Tuple{[]any{0.25}, int64(-7)}}); err != nil {
		t.Fatal(err)
	}
	v, err := Decode(b.Bytes())
	if diff := cmp.Diff(&List{[]any{Tuple{&List{[]any{0.25}}, int64(-7)}}}, v); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if err := Encode(&b, "text"); err == nil {
		t.Error("a string was written")
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"plain", "arrays", "mixed", "scalars", "results", "hostile"} {
		for _, data := range files(f, name) {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			v, err := Decode(data)
			if err != nil {
				if strings.Contains(err.Error(), "\n") {
					t.Fatalf("not one line: %q", err)
				}
				return
			}
			NumPy(v)
			Number(v)
		}, data)
	})
}

// TestJAXArrays: an array of JAX is NumPy's with words around it; bytes come as they lie in the
// file.
func TestJAXArrays(t *testing.T) {
	array := func(kind string, state ...any) *Call {
		dtype := &Call{What: Global{"numpy", "dtype"}, Args: Tuple{kind}}
		numpy := Tuple{int64(1), Tuple{int64(2), int64(2)}, dtype, false, []byte{1, 2, 3, 4}}
		return &Call{What: Global{"jax._src.array", "_reconstruct_array"},
			Args: append(Tuple{Global{"numpy._core.multiarray", "_reconstruct"}, Tuple{}, numpy}, state...)}
	}
	a, ok, err := NumPy(array("u1", &Dict{}))
	if !ok || err != nil || !slices.Equal(a.Shape, []int{2, 2}) || !slices.Equal(a.Data, []float64{1, 2, 3, 4}) {
		t.Errorf("%v %v %v", a, ok, err)
	}
	shape, data, ok, err := Bytes(array("u1"))
	if !ok || err != nil || !slices.Equal(shape, []int{2, 2}) || !slices.Equal(data, []byte{1, 2, 3, 4}) {
		t.Errorf("%v %v %v %v", shape, data, ok, err)
	}
	if _, _, ok, err := Bytes(array("i1")); !ok || err == nil {
		t.Error("numbers with a sign are bytes")
	}
	cut := array("u1")
	cut.Args = cut.Args[:2]
	if _, ok, err := NumPy(cut); !ok || err == nil {
		t.Error("an array without its numbers is read")
	}
	if _, _, ok, _ := Bytes("text"); ok {
		t.Error("a text is an array")
	}
}

package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/limits/limitstest"
)

func encode(t testing.TB, f *File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sample() *File {
	return &File{
		Metadata: map[string]string{"format": "test", "odd \"key\"": "line\nand π"},
		Tensors: []Tensor{
			Float32s("a.weight", []float32{1, -2, float32(math.Inf(1)), 4, 5, 6}, 2, 3),
			Float64s("costs", []float64{math.Pi, math.Copysign(0, -1)}, 2),
			Float32s("none", nil, 0, 4),
			Float32s("scalar", []float32{7}),
		},
	}
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	raw := encode(t, want)
	if n := binary.LittleEndian.Uint64(raw); n%8 != 0 {
		t.Errorf("header of %d bytes leaves the data unaligned", n)
	}
	got, err := Read(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" {
		t.Errorf("written again, the bytes differ: %s", diff)
	}
	a, _ := got.Tensor("a.weight")
	v := make([]float32, 6)
	if err := a.ReadFloat32s(v); err != nil || v[1] != -2 || !math.IsInf(float64(v[2]), 1) {
		t.Errorf("a.weight = %v, %v", v, err)
	}
	c, _ := got.Tensor("costs")
	d := make([]float64, 2)
	if err := c.ReadFloat64s(d); err != nil || d[0] != math.Pi || !math.Signbit(d[1]) {
		t.Errorf("costs = %v, %v", d, err)
	}
	if err := c.ReadFloat32s(v); err == nil {
		t.Error("an F64 tensor was read as F32")
	}
	if err := a.ReadFloat32s(v[:5]); err == nil {
		t.Error("a tensor was read into a slice of another length")
	}
}

func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &File{}
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z.0-9]{1,12}`), 0, 6, rapid.ID).Draw(t, "names")
		for _, n := range names {
			rows, cols := rapid.IntRange(0, 4).Draw(t, "rows"), rapid.IntRange(0, 4).Draw(t, "cols")
			v := rapid.SliceOfN(rapid.Float32(), rows*cols, rows*cols).Draw(t, "values")
			f.Tensors = append(f.Tensors, Float32s(n, v, rows, cols))
		}
		var b bytes.Buffer
		if err := Write(&b, f); err != nil {
			t.Fatal(err)
		}
		got, err := Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range f.Tensors {
			if g, ok := got.Tensor(want.Name); !ok || !bytes.Equal(g.Data, want.Data) {
				t.Fatalf("%s came back as %v", want.Name, g)
			}
		}
	})
}

// file frames a header and n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func TestRefusals(t *testing.T) {
	whole := encode(t, sample())
	long := binary.LittleEndian.AppendUint64(nil, 1<<40)
	cases := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a safetensors file"},
		{"seven bytes", whole[:7], "not a safetensors file"},
		{"text", []byte("this is plainly not a checkpoint"), "not a safetensors file"},
		{"huge header", long, "not a safetensors file"},
		{"cut header", whole[:20], "truncated: the header"},
		{"cut data", whole[:len(whole)-1], "truncated: the tensors"},
		{"tail", append(bytes.Clone(whole), 0), "1 bytes follow"},
		{"no object", file("[]", 0), "no JSON object"},
		{"broken", file(`{"a":`, 0), "broken JSON"},
		{"two objects", file(`{} {}`, 0), "something follows"},
		{"twice", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "twice"},
		{"hole", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "a starts at byte 4"},
		{"overlap", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "b starts at byte 4"},
		{"size", file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "do not fill"},
		{"overflow", file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 0), "do not fill"},
		{"negative", file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,-4]}}`, 0), "do not fill"},
		{"type", file(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 4), `type "F16"`},
		{"field", file(`{"a":{"dtype":"F32","Shape":[1],"data_offsets":[0,4]}}`, 4), `unknown field "Shape"`},
		{"missing field", file(`{"a":{"dtype":"F32","shape":[1]}}`, 4), "needs dtype"},
		{"null shape", file(`{"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}}`, 4), "needs dtype"},
		{"fraction", file(`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, 4), "bad header entry"},
		{"metadata", file(`{"__metadata__":{"a":1}}`, 0), "no string"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(c.data), int64(len(c.data)))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, f := range map[string]*File{
		"twice":    {Tensors: []Tensor{Float32s("a", nil, 0), Float32s("a", nil, 0)}},
		"shape":    {Tensors: []Tensor{Float32s("a", []float32{1}, 2)}},
		"type":     {Tensors: []Tensor{{Name: "a", DType: "F8"}}},
		"reserved": {Tensors: []Tensor{Float32s(metadataKey, nil, 0)}},
	} {
		if err := Write(&bytes.Buffer{}, f); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.safetensors")
	if err := os.WriteFile(path, encode(t, sample()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
	for _, p := range []string{dir, filepath.Join(dir, "absent")} {
		if _, err := Load(p); err == nil || strings.Contains(err.Error(), dir) {
			t.Errorf("load %s: %v; want an error that leaves the path to the caller", p, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode(f, sample()))
	f.Add(file(`{"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]}}   `, 4))
	f.Add(file(`{"__metadata__":{}}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			got, err := Read(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				return
			}
			again := encode(t, got) // what is accepted can be written,
			back, err := Read(bytes.NewReader(again), int64(len(again)))
			if err != nil { // and read,
				t.Fatal(err)
			}
			if !bytes.Equal(again, encode(t, back)) { // and means the same.
				t.Fatal("a second writing differs")
			}
		}, data)
	})
}

// TestBFloat16: what bf16 can hold comes back as it was, and the rest as its nearest.
func TestBFloat16(t *testing.T) {
	exact := []float32{0, 1, -2.5, 0.15625, float32(math.Inf(1)), -3.3895314e38}
	// two ties, to even; two in between
	near := []float32{1.00390625, 1.01171875, 0.1, float32(math.Pi)}
	want := append(append([]float32{}, exact...), 1, 1.015625, 0.10009765625, 3.140625)
	f := &File{Tensors: []Tensor{BFloat16s("a", append(append([]float32{}, exact...), near...), 10)}}
	back, err := Read(bytes.NewReader(encode(t, f)), int64(len(encode(t, f))))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 10)
	if err := back.Tensors[0].ReadFloat32s(got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := back.Tensors[0].ReadFloat32s(got[:9]); err == nil {
		t.Error("ten numbers were read as nine")
	}
	nan := make([]float32, 1)
	if err := BFloat16s("n", []float32{float32(math.NaN())}, 1).ReadFloat32s(nan); err != nil || nan[0] == nan[0] {
		t.Errorf("%v, %v", nan, err)
	}
}

package safetensors

import (
	"bytes"
	"errors"
	"math/rand"
	"strings"
	"testing"
)

func written(t testing.TB, f *File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEveryFlipIsNoticed: any other value of any byte of a small file, and 10,000 flips in a large
// one, are noticed when it is read.
func TestEveryFlipIsNoticed(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	small := written(t, &File{Metadata: map[string]string{"haul.format": "2", "a": "é\"b\\"}, Tensors: []Tensor{Float32s("w", []float32{1, 2, 3}, 3), Float64s("m", []float64{4}, 1)}})
	large := written(t, &File{Metadata: map[string]string{"haul.format": "2"}, Tensors: []Tensor{Float32s("w", make([]float32, 1<<18), 1<<18)}})
	noticed := func(data []byte, at int, by byte) {
		data[at] ^= by
		if _, err := Read(bytes.NewReader(data), int64(len(data))); err == nil {
			t.Errorf("byte %d of %d, changed by %#x, was not noticed: %q", at, len(data), by, data[max(0, at-20):min(len(data), at+20)])
		}
		data[at] ^= by
	}
	for at := range small {
		for by := 1; by < 256; by++ {
			noticed(small, at, byte(by))
		}
	}
	for range 10_000 {
		noticed(large, random.Intn(len(large)), 1<<random.Intn(8))
	}
	if f, err := Read(bytes.NewReader(small), int64(len(small))); err != nil || !f.Summed || len(f.Metadata) != 2 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestFilesWithoutASum: a file of an earlier version is read, and says that it has no sum.
func TestFilesWithoutASum(t *testing.T) {
	data := framed(`{"__metadata__":{"haul.format":"2"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`)
	data = append(data, 0, 0, 0, 0)
	if f, err := Read(bytes.NewReader(data), int64(len(data))); err != nil || f.Summed {
		t.Errorf("%+v, %v", f, err)
	}
	for _, half := range []string{`"haul.summed":"1"`, `"haul.crc32c":"00000000"`, `"haul.summed":"1","haul.crc32c":"0"`} {
		bad := framed(`{"__metadata__":{` + half + `}}`)
		if _, err := Read(bytes.NewReader(bad), int64(len(bad))); !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", half, err)
		}
	}
}

// Package limitstest counts what reading an input takes, for tests and fuzz targets.
package limitstest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"
)

// A reading may allocate fixedBytes, and bytesPerByte for each byte of its input, unpacked.
const (
	fixedBytes   = 64 << 20
	bytesPerByte = 128
)

// Keep is the environment's variable with the folder for the slowest and the largest inputs that a
// fuzz target has seen. scripts/fuzz sets it.
const Keep = "HAUL_FUZZ_KEEP"

// kept is how many of the slowest and of the largest inputs of a target are kept.
const kept = 3

// Reading runs read and fails the test where it allocates more than its input allows: size is the
// number of bytes that the input has, or unpacks to. input are the arguments of the fuzz target,
// from which a seed is written where Keep is set; nil: none is.
func Reading(t *testing.T, size int, read func(), input ...any) {
	t.Helper()
	before, began := allocated(), time.Now()
	read()
	took, bytes := time.Since(began), allocated()-before
	if most := Most(size); bytes > most {
		t.Errorf("reading %d bytes allocated %d, more than %d", size, bytes, most)
	}
	if folder := os.Getenv(Keep); folder != "" && len(input) > 0 {
		target, _, _ := strings.Cut(t.Name(), "/")
		keepMost(t, filepath.Join(folder, target), "slow", took.Seconds(), size, input)
		keepMost(t, filepath.Join(folder, target), "large", float64(bytes), size, input)
	}
}

// Most is how many bytes the reading of an input may allocate.
func Most(size int) int64 { return fixedBytes + bytesPerByte*int64(size) }

// Unpacked is the number of bytes of an input, or of what it unpacks to where that is more: of a
// file of gzip, or of all members of a zip archive. A packing is opened once, to at most 1 GiB.
func Unpacked(data []byte) int {
	n := int64(0)
	count := func(r io.Reader) {
		more, _ := io.Copy(io.Discard, io.LimitReader(r, max(0, 1<<30-n)))
		n += more
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			count(z)
		}
	} else if z, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil {
		for _, f := range z.File {
			if r, err := f.Open(); err == nil {
				count(r)
				r.Close()
			}
		}
	}
	return max(len(data), int(n))
}

func allocated() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// record is an input that is kept, as a line of records.json beside its seed.
type record struct {
	Seed  string  `json:"seed"`
	Value float64 `json:"value"` // seconds, or bytes allocated
	Size  int     `json:"size"`
}

// least are the smallest values that are kept, by folder and kind: most inputs pass it unread.
var least = map[string]float64{}

// keepMost keeps an input whose value is among the largest of its target. One process at a time
// writes to a folder.
func keepMost(t *testing.T, folder, kind string, value float64, size int, input []any) {
	if value <= least[folder+kind] {
		return
	}
	list := records(folder, kind)
	text := Seed(input...)
	one := record{fmt.Sprintf("%s-%x", kind, sha256.Sum256([]byte(text)))[:len(kind)+17], value, size}
	for i, r := range list {
		if r.Seed == one.Seed {
			list[i].Value = min(r.Value, value) // what was slow once, by chance, is measured again
			one.Seed = ""
		}
	}
	if one.Seed != "" {
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b record) int { return int(min(1, max(-1, 1e9*(b.Value-a.Value)))) })
	for len(list) > kept {
		_ = os.Remove(filepath.Join(folder, list[kept].Seed))
		list = slices.Delete(list, kept, kept+1)
	}
	if len(list) == kept {
		least[folder+kind] = list[kept-1].Value
	}
	lines, err := json.Marshal(list)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil && slices.Contains(list, one) {
		err = os.WriteFile(filepath.Join(folder, one.Seed), []byte(text), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, kind+".json"), lines, 0o644)
	}
	if err != nil {
		t.Logf("keeping a seed: %v", err)
	}
}

func records(folder, kind string) (list []record) {
	if text, err := os.ReadFile(filepath.Join(folder, kind+".json")); err == nil {
		_ = json.Unmarshal(text, &list)
	}
	return list
}

// Seed is an input in the form of the files of testdata/fuzz.
func Seed(input ...any) string {
	var b strings.Builder
	b.WriteString("go test fuzz v1\n")
	for _, v := range input {
		switch v := v.(type) {
		case []byte:
			fmt.Fprintf(&b, "[]byte(%q)\n", v)
		case string:
			fmt.Fprintf(&b, "string(%q)\n", v)
		default:
			fmt.Fprintf(&b, "%s(%v)\n", reflect.TypeOf(v), v)
		}
	}
	return b.String()
}

package xland

import (
	"bytes"
	"compress/bzip2"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/limits/limitstest"
)

// benchmarkFile is testdata's, unpacked: twelve rulesets, written by the package.
func benchmarkFile(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open("testdata/benchmark.bz2")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(bzip2.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestReadsThePackagesFiles: the rulesets read equal the written ones, compressed or not.
func TestReadsThePackagesFiles(t *testing.T) {
	f, err := OpenFile("testdata/benchmark.bz2")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := parseFile(benchmarkFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if f.Len() != 12 || plain.Len() != 12 {
		t.Fatalf("%d and %d rulesets", f.Len(), plain.Len())
	}
	for i := range 12 {
		r := f.Ruleset(i)
		if int(r.Goal[0]) != i || len(r.Rules) != 5 || len(r.Tiles) != 11 || r.Tiles[8] != [2]uint8{GoalTile, Green} {
			t.Errorf("ruleset %d: %v", i, r)
		}
		if err := r.Check(9); err != nil {
			t.Errorf("ruleset %d: %v", i, err)
		}
		if !bytes.Equal(r.bytes(), plain.Ruleset(i).bytes()) {
			t.Errorf("ruleset %d differs unpacked", i)
		}
	}
}

// TestBadFiles: one line each.
func TestBadFiles(t *testing.T) {
	data := benchmarkFile(t)
	packed, err := os.ReadFile("testdata/benchmark.bz2")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		why  string
	}{
		"empty":    {nil, "empty or cut short"},
		"packed":   {packed[:len(packed)/2], "unpack"},
		"cut":      {data[:len(data)/2], "middle of a value"},
		"words":    {[]byte("not a pickle"), "no pickle"},
		"a list":   {[]byte("\x80\x04]."), "no benchmark: want a dictionary"},
		"no goals": {bytes.Replace(data, []byte("\x05goals"), []byte("\x05goats"), 1), "it has no goals"},
		"no rules": {bytes.Replace(data, []byte("\x05rules"), []byte("\x05rulez"), 1), "it has no rules"},
		"fewer":    {bytes.Replace(data, []byte("K\x0cK\x05K\x07"), []byte("K\x06K\x0aK\x07"), 1), "rules: 6 rulesets, goals has 12"},
		"words of": {bytes.ReplaceAll(data, []byte("\x02u1"), []byte("\x02b1")), "goals: an array of type"},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenFile("testdata/none"); err == nil {
		t.Error("a file that is not there opens")
	}
}

// FuzzBenchmark: nothing in a file is trusted, and what is read can be asked for.
func FuzzBenchmark(f *testing.F) {
	f.Add(benchmarkFile(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			b, err := parseFile(data)
			if err != nil {
				return
			}
			for _, i := range []int{0, b.Len() - 1} {
				r := b.Ruleset(i)
				if again, err := parseRuleset(r.bytes()); err != nil || !bytes.Equal(again.bytes(), r.bytes()) {
					t.Errorf("ruleset %d does not come back: %v", i, err)
				}
				if r.Check(9) == nil {
					r.Describe()
				}
			}
		}, data)
	})
}

package policies

import (
	"math/rand"
	"testing"
)

// TestFlipsAreNoticed: 10,000 flips in the files that are shipped are noticed, and every file has
// its sum.
func TestFlipsAreNoticed(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	names := Names()
	if len(names) != len(sums) {
		t.Errorf("%d policies, %d sums", len(names), len(sums))
	}
	for _, name := range names {
		packed, err := files.ReadFile(name + weights)
		if err != nil {
			t.Fatal(err)
		}
		if err := intact(name, packed); err != nil {
			t.Error(err)
		}
		packed = append([]byte(nil), packed...)
		for range 1 + 10_000/len(names) {
			at, by := random.Intn(len(packed)), byte(1)<<random.Intn(8)
			packed[at] ^= by
			if intact(name, packed) == nil {
				t.Errorf("%s: byte %d", name, at)
			}
			packed[at] ^= by
		}
	}
}

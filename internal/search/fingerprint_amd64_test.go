package search

import (
	"strings"
	"testing"
)

// Vector code of every instruction set, and plain Go, give the same fingerprints.
func TestFingerprintsOfEveryInstructionSet(t *testing.T) {
	defer func(a, b, c, d bool) { flatAVX512, flatAVX2, denseQuick, denseOn = a, b, c, d }(flatAVX512, flatAVX2, denseQuick, denseOn)
	cases := fingerprintCases(t)
	for i := range cases {
		c := &cases[i]
		if !strings.HasPrefix(c.name, "routefinder-") && c.name != "solomon" && c.name != "vrpmb" && c.name != "vrpb" && c.name != "plain-open-small" {
			continue
		}
		p := c.problem()
		want := ""
		for _, set := range []struct {
			name                string
			avx512, avx2, dense bool
		}{{"AVX-512", true, true, true}, {"AVX-512 in 32 bits", true, true, false}, {"AVX2", false, true, false}, {"plain Go", false, false, false}, {"plain Go in 16 bits", false, false, true}} {
			if set.avx512 && !avx512 || set.avx2 && !avx2 {
				continue
			}
			flatAVX512, flatAVX2, denseQuick, denseOn = set.avx512, set.avx2, set.avx512 && dense16, set.dense
			got := fingerprint(t, c, p, 1)
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s by %s: %s, want %s", c.name, set.name, got, want)
			}
		}
	}
}

// what this processor has
var avx512, avx2, dense16 = flatAVX512, flatAVX2, denseQuick

package kernel_test

import (
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel"
)

// TestNumberedWeightsStayInTheirSite: the calls of a site reach into the next one's exactly where
// Numbered says no.
func TestNumberedWeightsStayInTheirSite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.IntRange(1, 8200).Draw(t, "keys")
		rows := rapid.IntRange(1, 80_000).Draw(t, "rows")
		// the second call of a row's last block: its highest
		draw := kernel.Drop{Site: 4}.Weights(rows-1, (keys+31)/32-1, keys) + 1
		if stays := draw>>24 == 4; stays != (kernel.Drop{}).Numbered(rows, keys) {
			t.Fatalf("%d rows of %d keys: the last draw is %#x", rows, keys, draw)
		}
	})
	for _, c := range []struct{ tokens, heads int }{{8192, 4}, {5792, 8}} {
		if !(kernel.Drop{}).Numbered(c.heads*c.tokens, c.tokens) || (kernel.Drop{}).Numbered(c.heads*(c.tokens+1), c.tokens+1) {
			t.Errorf("%d tokens are not the most of %d heads", c.tokens, c.heads)
		}
	}
}

// TestKeep: of all numbers of 16 bits, those below the threshold are dropped and no
// others, whatever the place of an element in its word.
func TestKeep(t *testing.T) {
	for _, threshold := range []uint32{0, 1, 255, 256, 257, 6554, 32768, 65535} {
		for _, place := range []int{0, 7, 15, 16, 31} {
			dropped := uint32(0)
			for number := range uint32(1 << 16) {
				var words [8]uint32
				for b := range words {
					words[b] = number>>(8+b)&1<<place | number>>b&1<<((place+16)%32)
				}
				if kernel.Keep(threshold, words)>>place&1 == 0 {
					dropped++
					if number >= threshold {
						t.Fatalf("threshold %d drops number %d at place %d", threshold, number, place)
					}
				}
			}
			if dropped != threshold {
				t.Errorf("threshold %d: %d of 65536 numbers are dropped at place %d", threshold, dropped, place)
			}
		}
	}
}

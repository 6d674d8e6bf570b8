package host_test

import (
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
)

// TestNumberedWeightsStayInTheirSite: the calls of a site reach into the next one's exactly where
// Numbered says no.
func TestNumberedWeightsStayInTheirSite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.IntRange(1, 11_600).Draw(t, "keys")
		rows := rapid.IntRange(1, 120_000).Draw(t, "rows")
		// of a row's last block: its highest
		draw := host.DropWord(kernel.Drop{Site: 4}, rows-1, (keys+31)/32-1, keys)
		if stays := draw>>24 == 4; stays != (kernel.Drop{}).Numbered(rows, keys) {
			t.Fatalf("%d rows of %d keys: the last draw is %#x", rows, keys, draw)
		}
	})
	for _, c := range []struct{ tokens, heads int }{{11584, 4}, {8192, 8}} {
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
				var words [4]uint32
				for b := range words {
					for k, place := range []int{place + 16, place + 24, place + 8, place} {
						words[b] |= number >> (4*k + b) & 1 << (place % 32)
					}
				}
				for b := range words { // bits 8 to 11 are differences
					words[b] ^= words[(b+1)%4] >> ((place + 16) % 32) & 1 << ((place + 8) % 32)
				}
				if host.Keep(threshold, words)>>place&1 == 0 {
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

// TestKeepPairs: the upper eight bits of two elements' numbers are independent, wherever the two
// lie: of the 128 bits of a call they are 16 linear forms, none a sum of others.
func TestKeepPairs(t *testing.T) {
	const places = 32
	// forms[c][b] are the bits of a call that bit 8+b of c's number is the sum of. They are found by
	// a call that has one bit: c's number reaches bit 8+b and no higher one where it is in the sum.
	var forms [places][8][2]uint64
	for from := range 4 * places {
		var words [4]uint32
		words[from/places] = 1 << (from % places)
		for b := range 8 {
			reach, higher := host.Keep(1<<(8+b), words), uint32(0)
			if b < 7 {
				higher = host.Keep(1<<(9+b), words)
			}
			for c := range places {
				if (reach&^higher)>>c&1 == 1 {
					forms[c][b][from/64] |= 1 << (from % 64)
				}
			}
		}
	}
	for a := range places {
		for c := range a {
			rank, rows := 0, append(forms[a][:], forms[c][:]...)
			for bit := range 128 {
				has := func(r [2]uint64) bool { return r[bit/64]>>(bit%64)&1 == 1 }
				for i := rank; i < len(rows); i++ {
					if !has(rows[i]) {
						continue
					}
					rows[rank], rows[i] = rows[i], rows[rank]
					for k := rank + 1; k < len(rows); k++ {
						if has(rows[k]) {
							rows[k][0], rows[k][1] = rows[k][0]^rows[rank][0], rows[k][1]^rows[rank][1]
						}
					}
					rank++
					break
				}
			}
			if rank != 16 {
				t.Fatalf("elements %d and %d: %d of 16 bits are independent", c, a, rank)
			}
		}
	}
}

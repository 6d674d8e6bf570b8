//go:build unix

package cpu

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// words32 views floats, which guarded hands out, as words.
func words32(f []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

// TestKeep holds every bit to the contract's own words, with pages of no access on either side.
func TestKeep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const width = 80
	groups := (width + 31) / 32
	eachSet(t, func(t *testing.T, set *primitives) {
		for _, rows := range []int{0, 4, 8, 20} {
			for _, rate := range []float32{0, 1e-5, 0.1, 0.5, 0.99} {
				d := kernel.Drop{Rate: rate, Site: random.IntN(256), Seed: random.Uint64()}
				index := random.Uint64()
				for _, front := range []bool{false, true} {
					n := rows * groups
					draws, dst, rounds := words32(guarded(t, n, front)), words32(guarded(t, n, front)), words32(guarded(t, roundWords, front))
					copy(rounds, roundKeys(d.Seed))
					for i := range draws {
						draws[i], _, _ = d.Call(i/groups, i%groups*32, width)
					}
					set.keep(dst, draws, rounds, uint32(index), uint32(index>>32), uint32(rng.Dropout), d.Threshold())
					for r := range rows {
						for c := range width {
							draw, word, half := d.Call(r, c, width)
							u := rng.At(d.Seed, index, draw, rng.Dropout)[word] >> (16 * half) & 0xffff
							if got, want := dst[r*groups+c/32]>>(c%32)&1 == 1, u >= d.Threshold(); got != want {
								t.Fatalf("row %d, column %d at rate %g: kept %v, want %v", r, c, rate, got, want)
							}
						}
					}
				}
			}
		}
	})
}

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
		for _, rows := range []int{0, 8, 16, 40} {
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

// TestKeepWeights does the same for the weights of attention: every bit is that of a number of 16
// bits, put together here bit by bit.
func TestKeepWeights(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	const keys = 80
	groups := (keys + 31) / 32
	eachSet(t, func(t *testing.T, set *primitives) {
		for _, rows := range []int{0, 8, 16, 40} {
			for _, rate := range []float32{0, 1e-5, 0.1, 0.25, 0.5, 0.99} {
				d := kernel.Drop{Rate: rate, Site: random.IntN(256), Seed: random.Uint64()}
				index := random.Uint64()
				for _, front := range []bool{false, true} {
					n := rows * groups
					draws, dst, rounds := words32(guarded(t, n, front)), words32(guarded(t, n, front)), words32(guarded(t, roundWords, front))
					copy(rounds, roundKeys(d.Seed))
					for i := range draws {
						draws[i] = d.Weights(i/groups, i%groups, keys)
					}
					set.keepWeights(dst, draws, rounds, uint32(index), uint32(index>>32), uint32(rng.Dropout), d.Threshold())
					for i, got := range dst {
						var words []uint32
						for call := range uint32(2) {
							made := rng.Rounds(rng.ShortRounds, [2]uint32{uint32(d.Seed), uint32(d.Seed >> 32)},
								[4]uint32{uint32(index), uint32(index >> 32), draws[i] + call, uint32(rng.Dropout)})
							words = append(words, made[:]...)
						}
						for c := range 32 {
							var number uint32
							for b, w := range words {
								number |= w>>c&1<<(8+b) | w>>((c+16)%32)&1<<b
							}
							if kept := got>>c&1 == 1; kept != (number >= d.Threshold()) {
								t.Fatalf("group %d, weight %d at rate %g: kept %v, its number is %d", i, c, rate, kept, number)
							}
						}
					}
				}
			}
		}
	})
}

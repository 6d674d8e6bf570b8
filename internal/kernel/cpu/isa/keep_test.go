//go:build unix

package isa

import (
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa/isatest"
	"haul/internal/kernel/host"
	"haul/internal/rng"
)

// TestKeep: every bit is that of a number of 16 bits, put together here bit by bit, with pages of
// no access on either side.
func TestKeep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	const width = 80
	groups := (width + 31) / 32
	eachSet(t, func(t *testing.T, set *Primitives) {
		for _, rows := range []int{0, 16, 32, 80} {
			for _, rate := range []float32{0, 1e-5, 0.1, 0.25, 0.5, 0.99} {
				d := kernel.Drop{Rate: rate, Site: random.IntN(256), Seed: random.Uint64()}
				index := random.Uint64()
				for _, front := range []bool{false, true} {
					n := rows * groups
					draws, dst, rounds := isatest.Words32(isatest.Guarded(t, n, front)), isatest.Words32(isatest.Guarded(t, n, front)), isatest.Words32(isatest.Guarded(t, roundWords, front))
					copy(rounds, RoundKeys(d.Seed))
					for i := range draws {
						draws[i] = host.DropWord(d, i/groups, i%groups, width)
					}
					set.Keep(dst, draws, rounds, uint32(index), uint32(index>>32), uint32(rng.Dropout), d.Threshold())
					for i, got := range dst {
						words := rng.Rounds(rng.ShortRounds, [2]uint32{uint32(d.Seed), uint32(d.Seed >> 32)},
							[4]uint32{uint32(index), uint32(index >> 32), draws[i], uint32(rng.Dropout)})
						for c := range 32 {
							bit := func(w, further int) uint32 { return words[w%4] >> ((c + further) % 32) & 1 }
							var number uint32
							for w := range 4 {
								number |= bit(w, 0)<<(12+w) | (bit(w, 8)^bit(w+1, 16))<<(8+w) | bit(w, 24)<<(4+w) | bit(w, 16)<<w
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

package model

import (
	"math"
	"math/bits"

	"haul/internal/rng"
)

// A stream starts with a Philox word of (seed, index) and then continues by itself, because a step
// of Philox would cost a tenth of an iteration. A result depends on the seed and on the number of
// draws, so no draw may depend on a clock or on the order of a map.

// Stream is the generator known as wyrand: one multiplication a number.
type Stream struct{ State uint64 }

// NewStream begins stream index of a seed.
func NewStream(seed, index uint64) Stream {
	w := rng.At(seed, index, 0, rng.Search)
	return Stream{uint64(w[0])<<32 | uint64(w[1])}
}

func (s *Stream) Next() uint64 {
	s.State += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(s.State, s.State^0xe7037ed1a0b428db)
	return hi ^ lo
}

// IntN draws from [0, n).
func (s *Stream) IntN(n int) int {
	return int(uint64(uint32(s.Next())) * uint64(n) >> 32)
}

// Float draws from [0, 1).
func (s *Stream) Float() float64 { return float64(s.Next()>>11) * 0x1p-53 }

// Exponential draws -ln(u) for u in (0, 1].
func (s *Stream) Exponential() float64 { return -math.Log(1 - s.Float()) }

// skipChance is the chance that an insertion overlooks a position (Christiaens and Vanden Berghe,
// 2020: blinks).
const skipChance = 0.01

// skipCounts[i] is how many positions are looked at before one is overlooked, at the quantile
// (i+½)/len: a geometric draw by table.
var skipCounts = func() (t [1024]int32) {
	for i := range t {
		u := (float64(i) + 0.5) / float64(len(t))
		t[i] = int32(math.Log(1-u) / math.Log(1-skipChance))
	}
	return t
}()

func (s *Stream) UntilNextSkip() int { return int(skipCounts[s.Next()>>54]) }

// Mix scatters a customer's number; a set's key is the sum over its members.
func Mix(v int32) uint64 {
	x := uint64(v) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

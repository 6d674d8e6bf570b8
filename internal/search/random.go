package search

import (
	"math"
	"math/bits"

	"haul/internal/rng"
)

// What a reader could break: a stream starts with a Philox word of (seed, index) and then
// continues by itself, because a step of Philox would cost a tenth of an iteration. A result
// depends on the seed and on the number of draws, so no draw may depend on a clock or on the
// order of a map.

// stream is the generator known as wyrand: one multiplication a number.
type stream struct{ state uint64 }

// newStream begins stream index of a seed.
func newStream(seed, index uint64) stream {
	w := rng.At(seed, index, 0, rng.Search)
	return stream{uint64(w[0])<<32 | uint64(w[1])}
}

func (s *stream) next() uint64 {
	s.state += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(s.state, s.state^0xe7037ed1a0b428db)
	return hi ^ lo
}

// below draws from [0, n).
func (s *stream) below(n int) int {
	return int(uint64(uint32(s.next())) * uint64(n) >> 32)
}

// unit draws from [0, 1).
func (s *stream) unit() float64 { return float64(s.next()>>11) * 0x1p-53 }

// exponential draws -ln(u) for u in (0, 1].
func (s *stream) exponential() float64 { return -math.Log(1 - s.unit()) }

// blinks[i] is how many positions are looked at before one is overlooked, at the quantile
// (i+½)/len: a geometric draw by table.
var blinks = func() (t [1024]int32) {
	for i := range t {
		u := (float64(i) + 0.5) / float64(len(t))
		t[i] = int32(math.Log(1-u) / math.Log(1-blinkChance))
	}
	return t
}()

func (s *stream) blink() int { return int(blinks[s.next()>>54]) }

package rng

import "math/bits"

// Python is Python's random.Random: a Mersenne Twister that is set up by an array, as
// random.seed(seed) does for a whole number. Like MT19937 it repeats what others have drawn.
type Python struct{ m MT19937 }

// NewPython is the generator after random.seed(seed).
func NewPython(seed uint32) *Python {
	p := &Python{*NewMT19937(19650218)}
	s := &p.m.state
	i := 1
	step := func() {
		if i++; i == mtWords {
			s[0], i = s[mtWords-1], 1
		}
	}
	for range mtWords {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1664525) + seed
		step()
	}
	for range mtWords - 1 {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1566083941) - uint32(i)
		step()
	}
	s[0] = 1 << 31
	return p
}

// Float64 is random.random().
func (p *Python) Float64() float64 { return p.m.Float64() }

// Below is random.randrange(n), and the index that random.choice takes of n: words are cut to the
// bits of n, and those not below it are drawn again.
func (p *Python) Below(n uint32) uint32 {
	for {
		if v := p.m.Uint32() >> (32 - bits.Len32(n)); v < n {
			return v
		}
	}
}

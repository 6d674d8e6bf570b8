package rng

// What a reader could break: this is not a source of Haul's randomness. It repeats, word for word,
// what NumPy's RandomState draws, so that test sets which were published as a seed can be made
// again.

const (
	mtWords = 624
	mtShift = 397
)

// MT19937 is the Mersenne Twister (Matsumoto and Nishimura 1998) as numpy.random.seed sets it up.
type MT19937 struct {
	state [mtWords]uint32
	next  int
}

// NewMT19937 is the generator after numpy.random.seed(seed).
func NewMT19937(seed uint32) *MT19937 {
	m := &MT19937{next: mtWords}
	m.state[0] = seed
	for i := 1; i < mtWords; i++ {
		last := m.state[i-1]
		m.state[i] = 1812433253*(last^last>>30) + uint32(i)
	}
	return m
}

// Uint32 is the next word.
func (m *MT19937) Uint32() uint32 {
	if m.next == mtWords {
		m.twist()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9D2C5680
	y ^= y << 15 & 0xEFC60000
	return y ^ y>>18
}

func (m *MT19937) twist() {
	for i := range mtWords {
		y := m.state[i]&0x80000000 | m.state[(i+1)%mtWords]&0x7FFFFFFF
		x := m.state[(i+mtShift)%mtWords] ^ y>>1
		if y&1 != 0 {
			x ^= 0x9908B0DF
		}
		m.state[i] = x
	}
	m.next = 0
}

// Float64 is the next number of numpy.random.uniform: 53 bits of two words.
func (m *MT19937) Float64() float64 {
	a, b := m.Uint32()>>5, m.Uint32()>>6
	return (float64(a)*(1<<26) + float64(b)) / (1 << 53)
}

// Integer is the next number of numpy.random.randint(low, high): words are cut to the bits of the
// range, and those past it are drawn again.
func (m *MT19937) Integer(low, high uint32) uint32 {
	most := high - 1 - low
	mask := most
	for shift := 1; shift < 32; shift *= 2 {
		mask |= mask >> shift
	}
	for {
		if v := m.Uint32() & mask; v <= most {
			return low + v
		}
	}
}

package rng

import "math/bits"

// What a reader could break: like MT19937 this is not a source of Haul's randomness. It repeats,
// word for word, what jax.random draws from a key (threefry2x32, partitionable, which is JAX's
// default), so that worlds of JAX programs can begin as theirs do.

// JAXKey is a key of jax.random.
type JAXKey [2]uint32

// NewJAXKey is jax.random.PRNGKey(seed).
func NewJAXKey(seed uint32) JAXKey { return JAXKey{0, seed} }

// threefry is Threefry-2x32 with 20 rounds (Salmon et al. 2011).
func (k JAXKey) threefry(x0, x1 uint32) (uint32, uint32) {
	ks := [3]uint32{k[0], k[1], k[0] ^ k[1] ^ 0x1BD11BDA}
	x0, x1 = x0+ks[0], x1+ks[1]
	for i := uint32(0); i < 5; i++ {
		r := [4]int{13, 15, 26, 6}
		if i&1 == 1 {
			r = [4]int{17, 29, 16, 24}
		}
		for _, by := range r {
			x0 += x1
			x1 = bits.RotateLeft32(x1, by) ^ x0
		}
		x0, x1 = x0+ks[(i+1)%3], x1+ks[(i+2)%3]+i+1
	}
	return x0, x1
}

// Split is key number i of jax.random.split(k, n), for any n over i.
func (k JAXKey) Split(i uint32) JAXKey {
	a, b := k.threefry(0, i)
	return JAXKey{a, b}
}

// Bits is word i of jax.random.bits(k, shape), the shape flattened.
func (k JAXKey) Bits(i uint32) uint32 {
	a, b := k.threefry(0, i)
	return a ^ b
}

// Integer is number i of jax.random.randint(k, shape, low, high), the shape flattened.
func (k JAXKey) Integer(i, low, high uint32) uint32 {
	span := high - low
	much := (1 << 16) % span
	much = much * much % span
	return low + (k.Split(0).Bits(i)%span*much+k.Split(1).Bits(i)%span)%span
}

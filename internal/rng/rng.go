// Package rng is Haul's one source of randomness: Philox4x32-10 (Salmon et al. 2011), a
// counter-based generator. A number is a pure function of (seed, index, draw, purpose), so the same
// seed gives the same numbers on one core, on eight, or on a GPU, in any order.
//
// What a reader could break: the layout of the counter and the order in which each purpose
// spends its words are part of every stored result. Changing either changes every instance,
// every sampled action and every initial weight.
package rng

// Purpose separates the streams of one seed, so that no two uses ever share a number.
type Purpose uint32

// The purposes in use. The values are fixed: they are part of the counter.
const (
	Instances      Purpose = 1  // instances that `gen` and `solve` make
	TrainInstances Purpose = 2  // instances that a training run learns from
	ValidInstances Purpose = 3  // the validation set, which picks the best checkpoint
	TestInstances  Purpose = 4  // the test set, apart from the validation set
	EvalInstances  Purpose = 5  // the rollout baseline's evaluation set
	Actions        Purpose = 6  // sampled actions
	Weights        Purpose = 7  // initial weights
	Dropout        Purpose = 8  // dropout masks
	Search         Purpose = 9  // randomised local search
	Goals          Purpose = 10 // which goals train and which test
	Regions        Purpose = 11 // sequences that an in-context agent learns from
	Learner        Purpose = 12 // a source learner: its actions, its minibatches
	Agent          Purpose = 13 // an in-context agent's actions
	TestRegions    Purpose = 14 // sequences of held-out goals
	Starts         Purpose = 15 // where an episode begins
	Sizes          Purpose = 16 // how many customers a step's instances have, where a run has several sizes
)

const (
	mul0  = 0xD2511F53
	mul1  = 0xCD9E8D57
	weyl0 = 0x9E3779B9
	weyl1 = 0xBB67AE85
)

// Block is Philox4x32 with ten rounds: four random words for a 64-bit key and a 128-bit counter.
func Block(key [2]uint32, ctr [4]uint32) [4]uint32 { return Rounds(10, key, ctr) }

// ShortRounds are the fewest rounds with which Philox4x32 passes BigCrush (Salmon et al. 2011,
// table 2): the masks of attention's dropout, the most numbers that a step draws, have so many.
const ShortRounds = 7

// Rounds is Philox4x32 with that many rounds.
func Rounds(rounds int, key [2]uint32, ctr [4]uint32) [4]uint32 {
	k0, k1 := key[0], key[1]
	c0, c1, c2, c3 := ctr[0], ctr[1], ctr[2], ctr[3]
	for range rounds {
		p0 := uint64(mul0) * uint64(c0)
		p1 := uint64(mul1) * uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += weyl0
		k1 += weyl1
	}
	return [4]uint32{c0, c1, c2, c3}
}

// At returns the four words of (seed, index, draw, purpose). The key is the seed's low and high
// word; the counter is (index low, index high, draw, purpose).
func At(seed, index uint64, draw uint32, purpose Purpose) [4]uint32 {
	return Block([2]uint32{uint32(seed), uint32(seed >> 32)},
		[4]uint32{uint32(index), uint32(index >> 32), draw, uint32(purpose)})
}

// Below maps a word to an integer in [0, n) without a division: (u*n) >> 32.
func Below(u, n uint32) uint32 { return uint32(uint64(u) * uint64(n) >> 32) }

// Float maps a word to a float32 in [0, 1) with 24 random bits: (u >> 8) * 2^-24.
func Float(u uint32) float32 { return float32(u>>8) * 0x1p-24 }

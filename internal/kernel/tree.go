package kernel

import "math/bits"

// What a reader could break: every sum over shards, lanes, parts and ranks of a step follows
// this one tree. So the owner of an aligned block of leaves can add it up alone, and the whole
// sum has the same bits. The shape depends only on the number of leaves, never on who adds.

// Tree visits the additions of a sum over n leaves in an order in which they may be made: leaf
// `into` takes leaf `from`, and leaf 0 has the sum in the end. Leaves are paired, then pairs, then
// pairs of pairs: ((0+1)+(2+3))+((4+5)+(6+7)) for eight. A leaf that is not there is passed over;
// its partner stands for both. Leaf 0 must be there.
func Tree(n int, there func(leaf int) bool, add func(into, from int)) {
	tree(0, n, there, add)
}

// tree adds up leaves [lo, hi) and returns the leaf that holds their sum; -1 where none is there.
func tree(lo, hi int, there func(int) bool, add func(into, from int)) int {
	if hi-lo == 1 {
		if there == nil || there(lo) {
			return lo
		}
		return -1
	}
	half := 1 << (bits.Len(uint(hi-lo-1)) - 1) // the largest power of two below hi-lo
	a, b := tree(lo, lo+half, there, add), tree(lo+half, hi, there, add)
	switch {
	case a < 0:
		return b
	case b >= 0:
		add(a, b)
	}
	return a
}

// TreeSum adds numbers up by the tree, in place: the first becomes the sum of all.
func TreeSum(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	Tree(len(v), nil, func(into, from int) { v[into] += v[from] })
	return v[0]
}

// Blocks tells whether n owners of equal, aligned blocks of leaves may each add up their own before
// the sum of all: only where a block is a whole subtree.
func Blocks(leaves, n int) bool {
	if n < 1 || leaves%n != 0 {
		return false
	}
	block := leaves / n
	return n == 1 || block&(block-1) == 0
}

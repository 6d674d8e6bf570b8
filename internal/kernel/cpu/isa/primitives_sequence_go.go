package isa

import (
	"math"

	"haul/internal/kernel/host"
	"haul/internal/rng"
)

// The plain-Go primitives of sequences: dropout masks and causal attention.

// roundWords is the length of a seed's round keys, two words each round.
const roundWords = 2 * rng.ShortRounds

// RoundKeys are the words that each round of Philox mixes in.
func RoundKeys(seed uint64) []uint32 {
	keys := make([]uint32, roundWords)
	low, high := uint32(seed), uint32(seed>>32)
	for i := 0; i < roundWords; i += 2 {
		keys[i], keys[i+1] = low, high
		low, high = low+0x9E3779B9, high+0xBB67AE85
	}
	return keys
}

// KeepUnit divides the number of groups that keep takes at once.
const KeepUnit = 16

// keepGo: bit c of dst[i] says that element c of group i is kept. A group is 32 neighbours of a
// row, and draws[i] its call; host.Keep decides.
func keepGo(dst, draws, rounds []uint32, low, high, purpose, threshold uint32) {
	key := [2]uint32{rounds[0], rounds[1]}
	for i, draw := range draws {
		dst[i] = host.Keep(threshold, rng.Rounds(rng.ShortRounds, key, [4]uint32{low, high, draw, purpose}))
	}
}

// dropGo: y[r,j] = residual[r,j] + (x[r,j]·scale where bit j of the row's `words` words is set,
// else 0); no residual where it is empty. y may be x.
func dropGo(y, x, residual []float32, mask []uint32, rows, n, words int, scale float32) {
	for r := range rows {
		for j := range n {
			v := float32(0)
			if mask[r*words+j>>5]>>(j&31)&1 != 0 {
				v = x[r*n+j] * scale
			}
			if len(residual) > 0 {
				v += residual[r*n+j]
			}
			y[r*n+j] = v
		}
	}
}

// softmaxCausalGo, in place: row r looks at the columns from first[r]-from up to, not including,
// end+r. There p = softmax of p·scale, then times keep where column j's bit of the row's mask is
// set and else 0; 0 in the other columns below n. logSum[r] is the logarithm of the sum of
// exp(p·scale). A row's mask is `words` words of 16 bits; rows share one where words is 0. What a
// row looks at may begin before column 0 and end past n; where it has none of the columns between,
// its results have no meaning.
func softmaxCausalGo(p, logSum []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32) {
	for r := range rows {
		row, m := p[r*ld:][:n], mask[r*words:]
		begin, stop := max(int(first[r])-from, 0), min(end+r, n)
		top := float32(math.Inf(-1))
		for j := begin; j < stop; j++ {
			row[j] *= scale
			top = max(top, row[j])
		}
		var sum float32
		for j := range row {
			if j < begin || j >= stop {
				row[j] = 0
				continue
			}
			row[j] = float32(math.Exp(float64(row[j] - top)))
			sum += row[j]
		}
		logSum[r] = top + float32(math.Log(float64(sum)))
		for j := range row {
			row[j] = keptOf(m, j, row[j], keep/sum)
		}
	}
}

// keptOf is v·scale where bit j of the mask is set.
func keptOf(mask []uint16, j int, v, scale float32) float32 {
	if mask[j>>4]>>(j&15)&1 == 0 {
		return 0
	}
	return v * scale
}

// softmaxCausalGradGo, in place on both: p holds scores as SoftmaxCausal is given them, and is left
// as that leaves it; with e those probabilities before anything was dropped, ds = e·(kept(ds) -
// dots[r])·scale.
func softmaxCausalGradGo(ds, p, logSum, dots []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32) {
	for r := range rows {
		row, dr, m := p[r*ld:][:n], ds[r*ld:][:n], mask[r*words:]
		begin, stop := int(first[r])-from, end+r
		for j := range row {
			e := float32(0)
			if begin <= j && j < stop {
				e = float32(math.Exp(float64(row[j]*scale - logSum[r])))
			}
			dr[j] = e * ((keptOf(m, j, dr[j], keep) - dots[r]) * scale)
			row[j] = keptOf(m, j, e, keep)
		}
	}
}

// rowDotsGo: out[r] = Σ over j < n of a[r*ld+j]·b[r*ld+j].
func rowDotsGo(out, a, b []float32, rows, n, ld int) {
	for r := range rows {
		var sum float32
		for j, v := range a[r*ld:][:n] {
			sum += v * b[r*ld+j]
		}
		out[r] = sum
	}
}

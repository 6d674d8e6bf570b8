package cpu

// Weights are kept packed beside their row-major form, in panels of 64 columns whose rows lie one after
// another, so that the product walks memory in order. What a reader could break: packing only moves
// values and fills the last panel's missing columns with zero, so any instruction set may do it.

// packedLen is how many floats a matrix of n output columns and k rows of products takes when packed.
func packedLen(n, k int) int { return (n + panel - 1) / panel * panel * k }

// packWeights packs W [n][k], outputs × inputs, as B [k][n] for C = A·Wᵀ:
// dst[j/64*k*64 + l*64 + j%64] = w[j*k+l], zero for j >= n.
func packWeights(dst, w []float32, n, k int) {
	for j := 0; j < n; j += panel {
		sets[0].transpose(dst[j*k:][:panel*k], panel, w[j*k:], k, min(panel, n-j), k)
	}
}

// packTransposed packs the same W [n][k] as B itself, for the product with W in the gradient of A:
// dst[j/64*n*64 + l*64 + j%64] = w[l*k+j], l < n, zero for j >= k.
func packTransposed(dst, w []float32, n, k int) {
	for j := 0; j < k; j += panel {
		width := min(panel, k-j)
		for l := range n {
			row := dst[j*n+l*panel:][:panel]
			copy(row, w[l*k+j:][:width])
			clear(row[width:])
		}
	}
}

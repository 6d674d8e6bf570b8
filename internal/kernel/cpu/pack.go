package cpu

// Weights are kept packed beside their row-major form, in panels of 64 columns whose rows lie one
// after another, so that the product walks memory in order; in bf16 as the tiles of tiles.go. What
// a reader could break: packing only moves values, or rounds them to bf16, and fills what is
// missing with zero, so any instruction set may do it.

// packSizes is how many floats the packed forms of W [n][k] take.
func packSizes(t *tileSet, n, k int) (forward, transposed int) {
	if t != nil {
		return tileFloats(n, k), tileFloats(k, n)
	}
	return packedLen(n, k), packedLen(k, n)
}

// packForward packs W [n][k], outputs × inputs, as B [k][n] for C = A·Wᵀ.
func packForward(t *tileSet, dst, w []float32, n, k int) {
	if t != nil {
		t.pack(columnsOfB, dst, w, k, n, k)
		return
	}
	packWeights(dst, w, n, k)
}

// packTransposed packs the same W as B itself, for the product with W in the gradient of A.
func packTransposed(t *tileSet, dst, w []float32, n, k int) {
	if t != nil {
		t.pack(rowsOfB, dst, w, k, k, n)
		return
	}
	packStraight(dst, w, n, k)
}

// packedLen is how many floats a matrix of n output columns and k rows of products takes when
// packed.
func packedLen(n, k int) int { return (n + panel - 1) / panel * panel * k }

// packWeights is packForward in fp32:
// dst[j/64*k*64 + l*64 + j%64] = w[j*k+l], zero for j >= n.
func packWeights(dst, w []float32, n, k int) {
	for j := 0; j < n; j += panel {
		sets[0].transpose(dst[j*k:][:panel*k], panel, w[j*k:], k, min(panel, n-j), k)
	}
}

// packStraight is packTransposed in fp32:
// dst[j/64*n*64 + l*64 + j%64] = w[l*k+j], l < n, zero for j >= k.
func packStraight(dst, w []float32, n, k int) {
	for j := 0; j < k; j += panel {
		width := min(panel, k-j)
		for l := range n {
			row := dst[j*n+l*panel:][:panel]
			copy(row, w[l*k+j:][:width])
			clear(row[width:])
		}
	}
}

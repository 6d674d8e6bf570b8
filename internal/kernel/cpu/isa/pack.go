package isa

// Weights are kept packed beside their row-major form, in panels of 64 columns whose rows lie one
// after another, so that the product walks memory in order; in bf16 as the tiles of tiles.go. What
// a reader could break: packing only moves values, or rounds them to bf16, and fills what is
// missing with zero, so any instruction set may do it.

// PackSizes is how many floats the packed forms of W [n][k] take.
func PackSizes(t *TileSet, n, k int) (forward, transposed int) {
	if t != nil {
		return TileFloats(n, k), TileFloats(k, n)
	}
	return PackedLen(n, k), PackedLen(k, n)
}

// PackForward packs W [n][k], outputs × inputs, as B [k][n] for C = A·Wᵀ.
func PackForward(t *TileSet, dst, w []float32, n, k int) {
	if t != nil {
		t.Pack(ColumnsOfB, dst, w, k, n, k)
		return
	}
	packWeights(dst, w, n, k)
}

// PackTransposed packs the same W as B itself, for the product with W in the gradient of A.
func PackTransposed(t *TileSet, dst, w []float32, n, k int) {
	if t != nil {
		t.Pack(RowsOfB, dst, w, k, k, n)
		return
	}
	packStraight(dst, w, n, k)
}

// PackedLen is how many floats a matrix of n output columns and k rows of products takes when
// packed.
func PackedLen(n, k int) int { return (n + Panel - 1) / Panel * Panel * k }

// packWeights is PackForward in fp32:
// dst[j/64*k*64 + l*64 + j%64] = w[j*k+l], zero for j >= n.
func packWeights(dst, w []float32, n, k int) {
	for j := 0; j < n; j += Panel {
		Tables[0].Transpose(dst[j*k:][:Panel*k], Panel, w[j*k:], k, min(Panel, n-j), k)
	}
}

// packStraight is PackTransposed in fp32:
// dst[j/64*n*64 + l*64 + j%64] = w[l*k+j], l < n, zero for j >= k.
func packStraight(dst, w []float32, n, k int) {
	for j := 0; j < k; j += Panel {
		width := min(Panel, k-j)
		for l := range n {
			row := dst[j*n+l*Panel:][:Panel]
			copy(row, w[l*k+j:][:width])
			clear(row[width:])
		}
	}
}

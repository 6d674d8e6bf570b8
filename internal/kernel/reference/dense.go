// Package reference is the plain-Go meaning of every op: one loop nest a function, in the order of
// the formula, over float32 or float64. Device interprets whole programs with it, in float64 to
// judge other devices and to check gradients by differences.
//
// What a reader could break: nothing here may be made faster at the price of a line that is harder
// to check by eye. Whatever a backend shares with this package (a helper, a trick, an order of sums
// that is not in the op's comment) is no longer tested by it.
package reference

import (
	"math"

	"haul/internal/kernel"
)

// Float is what the functions compute in.
type Float interface{ float32 | float64 }

func exp[F Float](x F) F     { return F(math.Exp(float64(x))) }
func log[F Float](x F) F     { return F(math.Log(float64(x))) }
func sqrt[F Float](x F) F    { return F(math.Sqrt(float64(x))) }
func tanh[F Float](x F) F    { return F(math.Tanh(float64(x))) }
func sigmoid[F Float](x F) F { return 1 / (1 + exp(-x)) }

func dot[F Float](a, b []F) F {
	var sum F
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// Matrix is rows of a tensor: row r is Data[r*Stride:][:Cols]. The zero Matrix stands for an absent
// operand.
type Matrix[F Float] struct {
	Data               []F
	Rows, Cols, Stride int
}

// Row is row r.
func (m Matrix[F]) Row(r int) []F { return m.Data[r*m.Stride:][:m.Cols] }

// Slice is rows [from, to).
func (m Matrix[F]) Slice(from, to int) Matrix[F] {
	return Matrix[F]{m.Data[from*m.Stride:], to - from, m.Cols, m.Stride}
}

// Linear: y = residual + drop(x·wᵀ + bias); with pre, pre = x·wᵀ + bias and y = GELU(pre). first is
// the global index of the instance of row 0.
func Linear[F Float](y, pre, x, w Matrix[F], bias []F, residual Matrix[F], d kernel.Drop, first uint64) {
	for r := range y.Rows {
		for j := range y.Cols {
			v := dot(x.Row(r), w.Row(j))
			if bias != nil {
				v += bias[j]
			}
			if pre.Data != nil {
				pre.Row(r)[j] = v
				v = gelu(v)
			}
			v *= droppedOf[F](d, first, r, j, y.Cols)
			if residual.Data != nil {
				v += residual.Row(r)[j]
			}
			y.Row(r)[j] = v
		}
	}
}

// gelu in its tanh form: x/2·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³).
func gelu[F Float](x F) F { return x / 2 * (1 + tanh(geluRoot*(x+geluCube*x*x*x))) }

// geluSlope is gelu's derivative: (1 + tanh u)/2 + x/2·(1 - tanh² u)·u′.
func geluSlope[F Float](x F) F {
	t := tanh(geluRoot * (x + geluCube*x*x*x))
	return (1+t)/2 + x/2*(1-t*t)*geluRoot*(1+3*geluCube*x*x)
}

const (
	geluRoot = 0.79788456080286535588 // √(2/π)
	geluCube = 0.044715
)

// LinearGradX: dx (+)= dy·w; with pre, dx = (dy·w)·GELU'(pre).
func LinearGradX[F Float](dx, dy, w, pre Matrix[F], accumulate bool) {
	for r := range dx.Rows {
		row := dx.Row(r)
		if !accumulate {
			clear(row)
		}
		for j, g := range dy.Row(r) {
			for c, v := range w.Row(j) {
				row[c] += g * v
			}
		}
		if pre.Data != nil {
			for c, v := range pre.Row(r) {
				row[c] *= geluSlope(v)
			}
		}
	}
}

// LinearGradW: dw += dyᵀ·x.
func LinearGradW[F Float](dw, dy, x Matrix[F]) {
	for r := range dy.Rows {
		for j, g := range dy.Row(r) {
			row := dw.Row(j)
			for c, v := range x.Row(r) {
				row[c] += g * v
			}
		}
	}
}

// LinearGradBias: dbias += column sums of dy, where dbias is not nil. It is no product, so dy is
// not rounded for it.
func LinearGradBias[F Float](dbias []F, dy Matrix[F]) {
	if dbias == nil {
		return
	}
	for r := range dy.Rows {
		for j, g := range dy.Row(r) {
			dbias[j] += g
		}
	}
}

// Norm: y = (x-mean)·rstd·gamma + beta, with rstd = 1/sqrt(variance+eps) and the variance over
// Cols, not Cols-1.
func Norm[F Float](y Matrix[F], mean, rstd []F, x Matrix[F], gamma, beta []F, eps F) {
	for r := range x.Rows {
		row := x.Row(r)
		var sum, squares F
		for _, v := range row {
			sum += v
		}
		mu := sum / F(x.Cols)
		for _, v := range row {
			squares += (v - mu) * (v - mu)
		}
		rs := 1 / sqrt(squares/F(x.Cols)+eps)
		for c, v := range row {
			y.Row(r)[c] = (v-mu)*rs*gamma[c] + beta[c]
		}
		mean[r], rstd[r] = mu, rs
	}
}

// NormGrad: with h = (x-mean)·rstd and e = dy·gamma,
// dx (+)= rstd·(e - mean(e) - h·mean(e·h)); dgamma += dy·h; dbeta += dy.
func NormGrad[F Float](dx Matrix[F], dgamma, dbeta []F, dy, x Matrix[F], mean, rstd, gamma []F, accumulate bool) {
	n := F(x.Cols)
	for r := range x.Rows {
		row, drow, out := x.Row(r), dy.Row(r), dx.Row(r)
		h := func(c int) F { return (row[c] - mean[r]) * rstd[r] }
		var meanE, meanEH F
		for c, g := range drow {
			meanE += g * gamma[c] / n
			meanEH += g * gamma[c] * h(c) / n
			dgamma[c] += g * h(c)
			dbeta[c] += g
		}
		for c, g := range drow {
			v := rstd[r] * (g*gamma[c] - meanE - h(c)*meanEH)
			if accumulate {
				v += out[c]
			}
			out[c] = v
		}
	}
}

// GLU: y = a·sigmoid(b) with g = [a | b].
func GLU[F Float](y, g Matrix[F]) {
	for r := range y.Rows {
		a, b := g.Row(r)[:y.Cols], g.Row(r)[y.Cols:]
		for c := range a {
			y.Row(r)[c] = a[c] * sigmoid(b[c])
		}
	}
}

// GLUGrad: da = dy·s and db = dy·a·s·(1-s) with s = sigmoid(b).
func GLUGrad[F Float](dg, dy, g Matrix[F]) {
	for r := range dy.Rows {
		w := dy.Cols
		a, b := g.Row(r)[:w], g.Row(r)[w:]
		da, db := dg.Row(r)[:w], dg.Row(r)[w:]
		for c, v := range dy.Row(r) {
			s := sigmoid(b[c])
			da[c], db[c] = v*s, v*a[c]*s*(1-s)
		}
	}
}

// MeanNodes: y[b] = mean of the n rows of x that belong to instance b.
func MeanNodes[F Float](y, x Matrix[F]) {
	n := x.Rows / y.Rows
	for b := range y.Rows {
		row := y.Row(b)
		clear(row)
		for i := range n {
			for c, v := range x.Row(b*n + i) {
				row[c] += v
			}
		}
		for c := range row {
			row[c] /= F(n)
		}
	}
}

// MeanNodesGrad: dx[b,i] (+)= dy[b]/n.
func MeanNodesGrad[F Float](dx, dy Matrix[F], accumulate bool) {
	n := dx.Rows / dy.Rows
	for r := range dx.Rows {
		row := dx.Row(r)
		if !accumulate {
			clear(row)
		}
		for c, v := range dy.Row(r / n) {
			row[c] += v / F(n)
		}
	}
}

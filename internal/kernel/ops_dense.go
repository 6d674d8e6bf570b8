package kernel

// Linear: Y[M,N] = Residual + drop(X[M,K]·Wᵀ + Bias), with W stored [N,K] (out × in). Bias and
// Residual may be nil; nothing is dropped where Drop.Rate is 0. X may be a column view. With Pre,
// instead, Pre = X·Wᵀ + Bias is kept for the gradient and Y = GELU(Pre); then Residual is nil and
// Drop.Rate 0.
type Linear struct {
	Y, X, W, Bias, Residual, Pre *Tensor
	Drop                         Drop
}

// Dims returns M, K and N.
func (o *Linear) Dims() (m, k, n int) { return o.X.Rows(), o.X.Cols(), o.W.Shape[0] }

// Kind names the op.
func (o *Linear) Kind() string { return "linear" }

// Args visits the tensors.
func (o *Linear) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.X, o.W, o.Bias, o.Residual)
	visit(f, Write, o.Y, o.Pre)
}

// Cost counts 2·M·K·N.
func (o *Linear) Cost() Cost {
	m, k, n := o.Dims()
	return Cost{2 * int64(m) * int64(k) * int64(n), bytesOf(o)}
}

// LinearGradX: DX[M,K] (+)= DY[M,N]·W. With Pre, whose GELU the linear read as X, it goes on
// through that: DX = (DY·W)·GELU'(Pre); then Accumulate is false.
type LinearGradX struct {
	DX, DY, W, Pre *Tensor
	Accumulate     bool
}

// Kind names the op.
func (o *LinearGradX) Kind() string { return "linear.dx" }

// Args visits the tensors.
func (o *LinearGradX) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY, o.W, o.Pre)
	visit(f, written(o.Accumulate), o.DX)
}

// Cost counts 2·M·K·N.
func (o *LinearGradX) Cost() Cost {
	return Cost{2 * int64(o.DY.Rows()) * int64(o.DY.Cols()) * int64(o.DX.Cols()), bytesOf(o)}
}

// LinearGradW: DW[N,K] += DYᵀ·X; DBias[N] += column sums of DY, where DBias is not nil.
type LinearGradW struct {
	DW, DBias, DY, X *Tensor
}

// Kind names the op.
func (o *LinearGradW) Kind() string { return "linear.dw" }

// Args visits the tensors.
func (o *LinearGradW) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY, o.X)
	visit(f, Update, o.DW, o.DBias)
}

// Cost counts 2·M·K·N.
func (o *LinearGradW) Cost() Cost {
	return Cost{2 * int64(o.DY.Rows()) * int64(o.DY.Cols()) * int64(o.X.Cols()), bytesOf(o)}
}

// Norm is layer normalisation over the last dimension: Y = (X-mean)·rstd·Gamma + Beta. Mean and
// Rstd [M] are kept for the gradient.
type Norm struct {
	Y, Mean, Rstd, X, Gamma, Beta *Tensor
}

// NormEps is added to the variance.
const NormEps = 1e-5

// Kind names the op.
func (o *Norm) Kind() string { return "norm" }

// Args visits the tensors.
func (o *Norm) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.X, o.Gamma, o.Beta)
	visit(f, Write, o.Y, o.Mean, o.Rstd)
}

// Cost counts eight operations an element.
func (o *Norm) Cost() Cost { return Cost{8 * int64(o.X.Len()), bytesOf(o)} }

// NormGrad: DX (+)= gradient; DGamma += DY·h; DBeta += DY, with h the normalised input.
type NormGrad struct {
	DX, DGamma, DBeta, DY, X, Mean, Rstd, Gamma *Tensor
	Accumulate                                  bool
}

// Kind names the op.
func (o *NormGrad) Kind() string { return "norm.grad" }

// Args visits the tensors.
func (o *NormGrad) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY, o.X, o.Mean, o.Rstd, o.Gamma)
	visit(f, Update, o.DGamma, o.DBeta)
	visit(f, written(o.Accumulate), o.DX)
}

// Cost counts fourteen operations an element.
func (o *NormGrad) Cost() Cost { return Cost{14 * int64(o.X.Len()), bytesOf(o)} }

// GLU: Y[M,W] = A·sigmoid(B) with G = [A | B] of 2W columns.
type GLU struct {
	Y, G *Tensor
}

// Kind names the op.
func (o *GLU) Kind() string { return "glu" }

// Args visits the tensors.
func (o *GLU) Args(f func(*Tensor, Access)) { visit(f, Read, o.G); visit(f, Write, o.Y) }

// Cost counts five operations an output.
func (o *GLU) Cost() Cost { return Cost{5 * int64(o.Y.Len()), bytesOf(o)} }

// GLUGrad: DG from DY and G.
type GLUGrad struct {
	DG, DY, G *Tensor
}

// Kind names the op.
func (o *GLUGrad) Kind() string { return "glu.grad" }

// Args visits the tensors.
func (o *GLUGrad) Args(f func(*Tensor, Access)) { visit(f, Read, o.DY, o.G); visit(f, Write, o.DG) }

// Cost counts nine operations an output.
func (o *GLUGrad) Cost() Cost { return Cost{9 * int64(o.DY.Len()), bytesOf(o)} }

// MeanNodes: Y[B,D] = mean over an instance's nodes of X[B,N,D].
type MeanNodes struct {
	Y, X *Tensor
}

// Kind names the op.
func (o *MeanNodes) Kind() string { return "mean" }

// Args visits the tensors.
func (o *MeanNodes) Args(f func(*Tensor, Access)) { visit(f, Read, o.X); visit(f, Write, o.Y) }

// Cost counts an addition an element.
func (o *MeanNodes) Cost() Cost { return Cost{int64(o.X.Len()), bytesOf(o)} }

// MeanNodesGrad: DX[b,i] (+)= DY[b]/N.
type MeanNodesGrad struct {
	DX, DY     *Tensor
	Accumulate bool
}

// Kind names the op.
func (o *MeanNodesGrad) Kind() string { return "mean.grad" }

// Args visits the tensors.
func (o *MeanNodesGrad) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY)
	visit(f, written(o.Accumulate), o.DX)
}

// Cost counts two operations an element.
func (o *MeanNodesGrad) Cost() Cost { return Cost{2 * int64(o.DX.Len()), bytesOf(o)} }

func written(accumulate bool) Access {
	if accumulate {
		return Update
	}
	return Write
}

package kernel

// GRU is a layer of gated recurrent units (Cho et al. 2014, https://arxiv.org/abs/1406.1078) over
// rows of T tokens, as PyTorch computes it. X is the input already multiplied with its weights; its
// columns, those of W and Bias, and the first ones of Gates are the reset gate's, the update
// gate's and the candidate's, D each. With h' the units before token t, s the logistic function
// and u = h'·Wᵀ + Bias:
//
//	r = s(X_r + u_r);  z = s(X_z + u_z);  c = tanh(X_c + r·u_c);  h = (1-z)·c + z·h'
//
// Before the first token h' is State. Prev keeps each token's h', Gates its r, z, c and u_c. With
// Carry State becomes the units after the last token, for the step that follows.
type GRU struct {
	H, Prev, Gates *Tensor // [B,T,D], [B,T,D], [B,T,4D]
	X, W, Bias     *Tensor // [B,T,3D], [3D,D], [3D]
	State          *Tensor // [B,D], Batch space
	Carry          bool
}

// Dims returns B, T and D.
func (o *GRU) Dims() (b, t, d int) { return o.H.Shape[0], o.H.Shape[1], o.H.Shape[2] }

// Kind names the op.
func (o *GRU) Kind() string { return "gru" }

// Args visits the tensors.
func (o *GRU) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.X, o.W, o.Bias)
	if o.Carry {
		visit(f, Update, o.State)
	} else {
		visit(f, Read, o.State)
	}
	visit(f, Write, o.H, o.Prev, o.Gates)
}

// Cost counts the products and twelve operations a unit.
func (o *GRU) Cost() Cost {
	b, t, d := o.Dims()
	return Cost{int64(b*t*d) * (6*int64(d) + 12), bytesOf(o)}
}

// GRUGrad goes through the tokens of a GRU from the last one back. DH becomes the gradient of all
// that a token's units lead to: what later tokens make of them is added to what it held. DX is
// X's gradient. The first 3D columns of Gates become that of u, by which the gradients of W and
// Bias are a linear layer's whose input is Prev. State has none: learning does not reach back
// beyond the row.
type GRUGrad struct {
	DX, DH, Gates, Prev *Tensor // [B,T,3D], [B,T,D], [B,T,4D], [B,T,D]
	W                   *Tensor // [3D,D]
}

// Dims returns B, T and D.
func (o *GRUGrad) Dims() (b, t, d int) { return o.DH.Shape[0], o.DH.Shape[1], o.DH.Shape[2] }

// Kind names the op.
func (o *GRUGrad) Kind() string { return "gru.grad" }

// Args visits the tensors.
func (o *GRUGrad) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.Prev, o.W)
	visit(f, Update, o.DH, o.Gates)
	visit(f, Write, o.DX)
}

// Cost counts the products and twenty operations a unit.
func (o *GRUGrad) Cost() Cost {
	b, t, d := o.Dims()
	return Cost{int64(b*t*d) * (6*int64(d) + 20), bytesOf(o)}
}

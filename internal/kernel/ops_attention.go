package kernel

// Attention is multi-head self-attention over the nodes of each instance, with a learned bias of
// the distance between two nodes:
//
//	P[b,h,i,j] = softmax over j of q_i·k_j/sqrt(D/H) - Slope[h]·dist(i,j)
//	Y[b,i] = concatenation over h of sum over j of P[b,h,i,j]·v_j
//
// QKV is [B,N,3D]: queries, keys, values. P [B,H,N,PadN] is kept for the gradient; columns from N
// to PadN are zero. A device whose products round may keep less there, and make P again in the
// gradient.
type Attention struct {
	Y, P, QKV, PosX, PosY, Slope *Tensor
	Heads                        int
}

// Pad rounds a row of n columns up to whole vectors.
func Pad(n int) int { return (n + 15) &^ 15 }

// Kind names the op.
func (o *Attention) Kind() string { return "attention" }

// Args visits the tensors.
func (o *Attention) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.QKV, o.PosX, o.PosY, o.Slope)
	visit(f, Write, o.Y, o.P)
}

// Dims returns B, N, D.
func (o *Attention) Dims() (b, n, d int) { return o.Y.Shape[0], o.Y.Shape[1], o.Y.Shape[2] }

// Cost counts the two products and the softmax.
func (o *Attention) Cost() Cost {
	b, n, d := o.Dims()
	return Cost{int64(b) * (4*int64(n)*int64(n)*int64(d) + 12*int64(n)*int64(n)*int64(o.Heads)), bytesOf(o)}
}

// AttentionGrad: DQKV and DSlope (accumulated) from DY and what Attention kept. Y and Slope are
// what Attention gave and read, for devices that make P again; where P is given as it stands they
// may be absent.
type AttentionGrad struct {
	DQKV, DSlope, DY, P, QKV, PosX, PosY, Y, Slope *Tensor
	Heads                                          int
}

// Kind names the op.
func (o *AttentionGrad) Kind() string { return "attention.grad" }

// Args visits the tensors.
func (o *AttentionGrad) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY, o.P, o.QKV, o.PosX, o.PosY, o.Y, o.Slope)
	visit(f, Write, o.DQKV)
	visit(f, Update, o.DSlope)
}

// Dims returns B, N, D.
func (o *AttentionGrad) Dims() (b, n, d int) { return o.DY.Shape[0], o.DY.Shape[1], o.DY.Shape[2] }

// Cost counts the four products and the softmax's gradient.
func (o *AttentionGrad) Cost() Cost {
	b, n, d := o.Dims()
	return Cost{int64(b) * (8*int64(n)*int64(n)*int64(d) + 8*int64(n)*int64(n)*int64(o.Heads)), bytesOf(o)}
}

// GraphAttention is graph attention over all nodes of each instance (Veličković et al. 2018,
// https://arxiv.org/abs/1710.10903), with the distance between two nodes as the feature of an edge:
//
//	z[b,h,i,j] = leaky(From[b,i,h] + To[b,j,h] - Far[b,i,h]·dist(i,j))
//	P[b,h,i,j] = softmax over j of z
//	Y[b,i] = concatenation over h of sum over j of P[b,h,i,j]·v_j
//
// where leaky(x) is x above 0 and Leak·x elsewhere. V is [B,N,D], Score [B,N,2H] holds From | To,
// Far is [B,N,H]. P [B,H,N,PadN] is kept for the gradient; columns from N to PadN are zero.
type GraphAttention struct {
	Y, P, V, Score, Far, PosX, PosY *Tensor
	Heads                           int
	Leak                            float32
}

// Kind names the op.
func (o *GraphAttention) Kind() string { return "gat" }

// Args visits the tensors.
func (o *GraphAttention) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.V, o.Score, o.Far, o.PosX, o.PosY)
	visit(f, Write, o.Y, o.P)
}

// Dims returns B, N, D.
func (o *GraphAttention) Dims() (b, n, d int) { return o.Y.Shape[0], o.Y.Shape[1], o.Y.Shape[2] }

// Cost counts the product, the scores and the softmax.
func (o *GraphAttention) Cost() Cost {
	b, n, d := o.Dims()
	return Cost{int64(b) * (2*int64(n)*int64(n)*int64(d) + 16*int64(n)*int64(n)*int64(o.Heads)), bytesOf(o)}
}

// GraphAttentionGrad: DV, DScore and DFar from DY and what GraphAttention kept.
type GraphAttentionGrad struct {
	DV, DScore, DFar, DY, P, V, Score, Far, PosX, PosY *Tensor
	Heads                                              int
	Leak                                               float32
}

// Kind names the op.
func (o *GraphAttentionGrad) Kind() string { return "gat.grad" }

// Args visits the tensors.
func (o *GraphAttentionGrad) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY, o.P, o.V, o.Score, o.Far, o.PosX, o.PosY)
	visit(f, Write, o.DV, o.DScore, o.DFar)
}

// Dims returns B, N, D.
func (o *GraphAttentionGrad) Dims() (b, n, d int) {
	return o.DY.Shape[0], o.DY.Shape[1], o.DY.Shape[2]
}

// Cost counts the two products, the scores and the softmax's gradient.
func (o *GraphAttentionGrad) Cost() Cost {
	b, n, d := o.Dims()
	return Cost{int64(b) * (4*int64(n)*int64(n)*int64(d) + 16*int64(n)*int64(n)*int64(o.Heads)), bytesOf(o)}
}

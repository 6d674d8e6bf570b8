package kernel

import "math"

// Embed: Y[m] = Σ over f of Tables[f][Index[m,f]]; an index of -1 adds nothing. Index is [B,T,F]
// with F at least len(Tables), Y [B,T,D]; further fields, which a GPU takes none of, are not looked
// up.
type Embed struct {
	Y, Index *Tensor
	Tables   []*Tensor // [rows, D], weights
}

// Kind names the op.
func (o *Embed) Kind() string { return "embed" }

// Args visits the tensors.
func (o *Embed) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.Index)
	visit(f, Read, o.Tables...)
	visit(f, Write, o.Y)
}

// Cost counts an addition for each table and element.
func (o *Embed) Cost() Cost { return Cost{int64(len(o.Tables)) * int64(o.Y.Len()), bytesOf(o)} }

// EmbedGrad: DTables[f][Index[m,f]] += DY[m], rows in order.
type EmbedGrad struct {
	DTables   []*Tensor
	DY, Index *Tensor
}

// Kind names the op.
func (o *EmbedGrad) Kind() string { return "embed.grad" }

// Args visits the tensors.
func (o *EmbedGrad) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY, o.Index)
	visit(f, Update, o.DTables...)
}

// Cost counts an addition for each table and element.
func (o *EmbedGrad) Cost() Cost { return Cost{int64(len(o.DTables)) * int64(o.DY.Len()), bytesOf(o)} }

// Rotate turns queries and keys by their tokens' positions (Su et al. 2021,
// https://arxiv.org/abs/2104.09864), so that a score knows how far apart two tokens are. Columns j
// and j + W/2 of a head, W wide, are a point that goes round by its own angle:
//
//	a = position·10000^(-2j/W)
//	Y_j = X_j·cos a - X_(j+W/2)·sin a;  Y_(j+W/2) = X_(j+W/2)·cos a + X_j·sin a
//
// X and Y are [B,T,(Heads+2·KVHeads)·W]: queries, keys, values, which pass as they are. A token's
// position is the last field of Index [B,T,F], below Positions; -1 turns nothing. Back turns by -a,
// which is the gradient.
type Rotate struct {
	Y, X, Index    *Tensor
	Heads, KVHeads int
	Positions      int
	Back           bool
}

// Kind names the op.
func (o *Rotate) Kind() string { return "rotate" }

// Args visits the tensors.
func (o *Rotate) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.X, o.Index)
	visit(f, Write, o.Y)
}

// Dims returns W and how many columns turn: those of queries and keys.
func (o *Rotate) Dims() (width, turned int) {
	width = o.X.Cols() / (o.Heads + 2*o.KVHeads)
	return width, width * (o.Heads + o.KVHeads)
}

// Cost counts three operations an element of queries and keys.
func (o *Rotate) Cost() Cost {
	_, turned := o.Dims()
	return Cost{3 * int64(o.X.Rows()) * int64(turned), bytesOf(o)}
}

// Angle is by how much a position turns pair j of a head so wide.
func (o *Rotate) Angle(position, j, width int) float64 {
	return float64(position) * math.Pow(10000, -2*float64(j)/float64(width))
}

// Spread gives every head of queries a copy of the key and the value that it shares with the others
// of its group (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245), as CausalAttention reads
// them. With G = Heads/KVHeads, heads W wide:
//
//	X = q_0..q_(Heads-1) | k_0..k_(KVHeads-1) | v_0..v_(KVHeads-1)
//	Y = q_0..q_(Heads-1) | k_(h/G) for each h | v_(h/G) for each h
//
// X is [B,T,(Heads+2·KVHeads)·W], Y [B,T,3·Heads·W]; KVHeads divides Heads.
type Spread struct {
	Y, X           *Tensor
	Heads, KVHeads int
}

// Kind names the op.
func (o *Spread) Kind() string { return "spread" }

// Args visits the tensors.
func (o *Spread) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.X)
	visit(f, Write, o.Y)
}

// Cost counts what is moved: nothing is computed.
func (o *Spread) Cost() Cost { return Cost{0, bytesOf(o)} }

// SpreadGrad: DX from DY. The gradients of a group's copies are added in the order of its heads.
type SpreadGrad struct {
	DX, DY         *Tensor
	Heads, KVHeads int
}

// Kind names the op.
func (o *SpreadGrad) Kind() string { return "spread.grad" }

// Args visits the tensors.
func (o *SpreadGrad) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY)
	visit(f, Write, o.DX)
}

// Cost counts an addition for each copy past a group's first.
func (o *SpreadGrad) Cost() Cost { return Cost{int64(o.DY.Len() - o.DX.Len()), bytesOf(o)} }

// CausalAttention is multi-head self-attention of each token over those before it in its sequence.
// A row of T tokens holds one or more sequences end to end: token i looks at j from First[i], the
// first of its own, to i.
//
//	S[b,h,i,j] = q_i·k_j/sqrt(D/H);  LogSum[b,h,i] = log Σ_j exp S
//	Y[b,i] = concatenation over h of Σ_j drop(exp(S - LogSum))·v_j
//
// QKV is [B,T,3D]: queries, keys, values. First never falls along a row and First[i] <= i. Drop's
// rows are h·T + i, its columns j, its width T.
type CausalAttention struct {
	Y, LogSum, QKV, First *Tensor // [B,T,D], [B,H,T], [B,T,3D], I32 [B,T]
	Heads                 int
	Drop                  Drop
}

// Kind names the op.
func (o *CausalAttention) Kind() string { return "causal" }

// Args visits the tensors.
func (o *CausalAttention) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.QKV, o.First)
	visit(f, Write, o.Y, o.LogSum)
}

// Dims returns B, T, D.
func (o *CausalAttention) Dims() (b, t, d int) { return o.Y.Shape[0], o.Y.Shape[1], o.Y.Shape[2] }

// Cost counts the two products and the softmax over the pairs of a row that is one sequence.
func (o *CausalAttention) Cost() Cost {
	b, t, d := o.Dims()
	return Cost{pairs(b, t) * (4*int64(d) + 12*int64(o.Heads)), bytesOf(o)}
}

// CausalAttentionGrad: DQKV from DY and what CausalAttention kept. It makes the probabilities
// again.
type CausalAttentionGrad struct {
	DQKV, DY, Y, LogSum, QKV, First *Tensor
	Heads                           int
	Drop                            Drop
}

// Kind names the op.
func (o *CausalAttentionGrad) Kind() string { return "causal.grad" }

// Args visits the tensors.
func (o *CausalAttentionGrad) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.DY, o.Y, o.LogSum, o.QKV, o.First)
	visit(f, Write, o.DQKV)
}

// Dims returns B, T, D.
func (o *CausalAttentionGrad) Dims() (b, t, d int) {
	return o.DY.Shape[0], o.DY.Shape[1], o.DY.Shape[2]
}

// Cost counts the four products of the gradient; making the scores again is the device's choice.
func (o *CausalAttentionGrad) Cost() Cost {
	b, t, d := o.Dims()
	return Cost{pairs(b, t) * (8*int64(d) + 8*int64(o.Heads)), bytesOf(o)}
}

// pairs is how many (token, earlier token or itself) b rows of t tokens have.
func pairs(b, t int) int64 { return int64(b) * int64(t) * int64(t+1) / 2 }

// CacheAttention is one step of causal attention with the past kept: the token's key and value are
// written at At[b] of the caches, then its query looks at positions 0..At[b]. With Of the caches
// are those of instance Of[b], and all tokens are written before any looks: several instances may
// carry tokens of one sequence, at positions that follow each other. No two may write to one place.
// The caches hold the heads of keys and values alone, which may be fewer than those of queries:
// head h reads head h/G of them, as Spread has it. K is their columns.
type CacheAttention struct {
	Y, QKV       *Tensor // [B,1,D], [B,1,D+2K]
	Keys, Values *Tensor // [B,T,K], Batch space: kept from step to step
	At           *Tensor // I32 [B,1], in 0..T-1
	Of           *Tensor // I32 [B,1], in 0..B-1; nil: each its own. Of devices that run a batch as one shard
	Heads        int     // of queries
}

// Group is how many heads of queries read each head of keys and values.
func (o *CacheAttention) Group() int { return o.Y.Cols() / o.Keys.Cols() }

// Kind names the op.
func (o *CacheAttention) Kind() string { return "cached" }

// Args visits the tensors.
func (o *CacheAttention) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.QKV, o.At, o.Of)
	visit(f, Update, o.Keys, o.Values)
	visit(f, Write, o.Y)
}

// Cost assumes full caches.
func (o *CacheAttention) Cost() Cost {
	return Cost{4 * int64(o.Group()) * int64(o.Keys.Len()), bytesOf(o)}
}

// Regions draws the shard's rows from streams of records: see RegionSpec, whose Row is its meaning.
type Regions struct {
	Index, Labels, First *Tensor // I32 [B,T,Width], [B,T,2], [B,T]
	Records              *Tensor // I32, Data space: Len words of streams
	RegionSpec
}

// Kind names the op.
func (o *Regions) Kind() string { return "regions" }

// Stage: it draws sequences.
func (o *Regions) Stage() Stage { return StageGenerate }

// Args visits the tensors.
func (o *Regions) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.Records)
	visit(f, Write, o.Index, o.Labels, o.First)
}

// Cost counts what is written, and as much of the records.
func (o *Regions) Cost() Cost {
	return Cost{0, 4 * int64(o.Index.Len()+o.Labels.Len()+2*o.First.Len())}
}

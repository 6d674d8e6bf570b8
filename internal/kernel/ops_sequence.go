package kernel

// Embed: Y[m] = Σ over f of Tables[f][Index[m,f]]; an index of -1 adds nothing. Index is [B,T,F] with F = len(Tables), Y [B,T,D].
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

// CausalAttention is multi-head self-attention of each token over those before it in its sequence. A row of T tokens holds one or
// more sequences end to end: token i looks at j from First[i], the first of its own, to i.
//
//	S[b,h,i,j] = q_i·k_j/sqrt(D/H);  LogSum[b,h,i] = log Σ_j exp S
//	Y[b,i] = concatenation over h of Σ_j drop(exp(S - LogSum))·v_j
//
// QKV is [B,T,3D]: queries, keys, values. First never falls along a row and First[i] <= i. Drop's rows are h·T + i, its columns j, its width T.
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

// CausalAttentionGrad: DQKV from DY and what CausalAttention kept. It makes the probabilities again.
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

// CacheAttention is one step of causal attention with the past kept: the token's key and value are written at At[b] of
// the caches, then its query looks at positions 0..At[b].
type CacheAttention struct {
	Y, QKV       *Tensor // [B,1,D], [B,1,3D]
	Keys, Values *Tensor // [B,T,D], Batch space: kept from step to step
	At           *Tensor // I32 [B,1], in 0..T-1
	Heads        int
}

// Kind names the op.
func (o *CacheAttention) Kind() string { return "cached" }

// Args visits the tensors.
func (o *CacheAttention) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.QKV, o.At)
	visit(f, Update, o.Keys, o.Values)
	visit(f, Write, o.Y)
}

// Cost assumes full caches.
func (o *CacheAttention) Cost() Cost { return Cost{4 * int64(o.Keys.Len()), bytesOf(o)} }

// CrossEntropy is the loss of one or more classifiers side by side and its gradient. Head g owns the next Columns[g] columns of Logits; row m
// has label Labels[m,g], -1 for none. With p the softmax over a head's c columns and target q = (1-Smoothing)·[k = label] + Smoothing/c:
//
//	loss = -Σ_k q_k·log p_k;  DLogits = Weight·(p - q), 0 without a label
//	Sums[b, 3g..3g+2] = Σ loss, labels, hits over the instance's rows; a hit has its label as the most likely class, the lowest on ties
//
// Rows past the batch's end get 0.
type CrossEntropy struct {
	DLogits, Logits, Labels *Tensor // [B,T,C], [B,T,C], I32 [B,T,G]
	Sums                    *Tensor // [B,3G], Batch space
	Columns                 []int
	Smoothing, Weight       float32
}

// Kind names the op.
func (o *CrossEntropy) Kind() string { return "crossentropy" }

// Stage: it compares with labels.
func (o *CrossEntropy) Stage() Stage { return StageLoss }

// Args visits the tensors. DLogits may be nil: the loss alone.
func (o *CrossEntropy) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.Logits, o.Labels)
	visit(f, Write, o.DLogits, o.Sums)
}

// Cost counts ten operations an element.
func (o *CrossEntropy) Cost() Cost { return Cost{10 * int64(o.Logits.Len()), bytesOf(o)} }

// Regions draws the shard's rows from learning histories: see RegionSpec, whose Row is its meaning.
type Regions struct {
	Index, Labels, First *Tensor // I32 [B,T,TokenFields], [B,T,2], [B,T]
	History              *Tensor // I32, Data space: Streams·Steps transitions
	RegionSpec
}

// Kind names the op.
func (o *Regions) Kind() string { return "regions" }

// Stage: it draws sequences.
func (o *Regions) Stage() Stage { return StageGenerate }

// Args visits the tensors.
func (o *Regions) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.History)
	visit(f, Write, o.Index, o.Labels, o.First)
}

// Cost counts what is written, and as much of the history.
func (o *Regions) Cost() Cost {
	return Cost{0, 4 * int64(o.Index.Len()+o.Labels.Len()+2*o.First.Len())}
}

// PPO is the clipped policy loss of actor and critic, and its gradient. Out [B,A+1] holds the logits of A actions and a value; Sample [B,4] the
// action taken, its log-probability then, its advantage and the return. With r = π(action)/π_then(action), v the value:
//
//	loss = -min(r·adv, clamp(r, 1-Clip, 1+Clip)·adv) + ValueCoef·(v - return)² - EntropyCoef·entropy;  DOut = Weight·gradient
//	Sums[b] = policy loss, (v - return)², entropy, 1 where r left 1±Clip
//
// Rows past the batch's end get 0.
type PPO struct {
	DOut, Out, Sample, Sums              *Tensor // Sample and Sums [B,4] in Batch space
	Clip, ValueCoef, EntropyCoef, Weight float32
}

// Kind names the op.
func (o *PPO) Kind() string { return "ppo" }

// Stage: it compares with what was sampled.
func (o *PPO) Stage() Stage { return StageLoss }

// Args visits the tensors.
func (o *PPO) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.Out, o.Sample)
	visit(f, Write, o.DOut, o.Sums)
}

// Cost counts twenty operations an element.
func (o *PPO) Cost() Cost { return Cost{20 * int64(o.Out.Len()), bytesOf(o)} }

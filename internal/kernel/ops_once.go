package kernel

// AdamW sums the gradients of all shards in a fixed order, clips by the global norm and updates
// weights and moments in one pass over flat buffers. A norm that is not finite skips the update and marks the
// step in Metrics.BadStep. In order, with t = State.Step + 1, which the op then stores:
//
//	g = gradient · (MaxNorm/(norm+1e-6) where MaxNorm > 0 and norm > MaxNorm)
//	m = Beta1·m + (1-Beta1)·g;  v = Beta2·v + (1-Beta2)·g²
//	w -= lr·(m/(1-Beta1^t)/(sqrt(v/(1-Beta2^t))+Eps) + Decay·w), biases and norms included
//
// lr is the control block's, times min(1, t/Warmup) where Warmup > 0. Where Total > 0 and t > Warmup it follows a cosine from there to
// Floor times the control block's at step Total: c·(Floor + (1-Floor)·(1+cos(π·(t-Warmup)/(Total-Warmup)))/2), t at most Total.
//
// With Every > 1 a step is one of Every parts of an update: gradients are added up over the parts, and the last part, State.Part = Every-1,
// clips and applies their sum.
type AdamW struct {
	Layout              *Layout
	Beta1, Beta2        float64
	Eps, Decay, MaxNorm float32 // MaxNorm 0: no clipping
	Warmup, Total       int
	Floor               float32
	Every               int // 0 and 1: every step updates
}

// Kind names the op.
func (o *AdamW) Kind() string { return "adamw" }

// Args visits nothing: the op owns the flat buffers as a whole.
func (o *AdamW) Args(func(*Tensor, Access)) {}

// Cost counts sixteen operations and seven four-byte accesses a weight.
func (o *AdamW) Cost() Cost { return Cost{16 * int64(o.Layout.Len), 28 * int64(o.Layout.Len)} }

// Tally adds the step's results to the metrics and, where EMADecay is set, its mean length to State.EMA: the
// first batch sets it, then EMA = EMADecay·EMA + (1-EMADecay)·mean. All tensors live in Batch space; rows past
// the batch's end are not counted.
type Tally struct {
	Length, LogProb, Entropy, Steps *Tensor // [B,S]
	Adv                             *Tensor // [B,S]
	Base                            *Tensor // [B,1]
	EMADecay                        float64
}

// Kind names the op.
func (o *Tally) Kind() string { return "tally" }

// Args visits the tensors.
func (o *Tally) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.Length, o.LogProb, o.Entropy, o.Steps, o.Adv, o.Base)
}

// Cost counts nothing worth the name.
func (o *Tally) Cost() Cost { return Cost{0, bytesOf(o)} }

// TallyTokens adds a classifier's sums to Metrics.Heads, row by row in order. Rows past the batch's end are not counted.
type TallyTokens struct {
	Sums *Tensor // [B,3G], as CrossEntropy leaves them; G at most len(Metrics.Heads)
}

// Kind names the op.
func (o *TallyTokens) Kind() string { return "tally.tokens" }

// Args visits the tensors.
func (o *TallyTokens) Args(f func(*Tensor, Access)) { visit(f, Read, o.Sums) }

// Cost counts nothing worth the name.
func (o *TallyTokens) Cost() Cost { return Cost{0, bytesOf(o)} }

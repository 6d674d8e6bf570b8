package kernel

// CrossEntropy is the loss of one or more classifiers side by side and its gradient. Head g owns
// the next Columns[g] columns of Logits; row m has label Labels[m,g], -1 for none. With p the
// softmax over a head's c columns and target q = (1-Smoothing)·[k = label] + Smoothing/c:
//
//	loss = -w·Σ_k q_k·log p_k;  DLogits = Weight·w·(p - q), 0 without a label
//	Sums[b, 3g..3g+2] = Σ loss, labels, hits over the instance's rows
//
// where w is Weigh[m] for the first classifier, if there is such a tensor, else 1. A hit has its
// label as the most likely class, the lowest on ties. Rows past the batch's end get 0.
type CrossEntropy struct {
	DLogits, Logits, Labels *Tensor // [B,T,C], [B,T,C], I32 [B,T,G]
	Weigh                   *Tensor // [B,T], or nil
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
	visit(f, Read, o.Logits, o.Labels, o.Weigh)
	visit(f, Write, o.DLogits, o.Sums)
}

// Cost counts ten operations an element.
func (o *CrossEntropy) Cost() Cost { return Cost{10 * int64(o.Logits.Len()), bytesOf(o)} }

// PPO is the clipped policy loss of actor and critic, and its gradient. A row of Out, [B,A+1] or
// [B,T,A+1], holds the logits of A actions and a value; a row of Sample the action taken, its
// log-probability then, its advantage and the return. With r = π(action)/π_then(action), v the
// value:
//
//	loss = -min(r·adv, clamp(r, 1-Clip, 1+Clip)·adv) + ValueCoef·(v - return)² - EntropyCoef·entropy
//	DOut = Weight·gradient
//	Sums[b] = policy loss, (v - return)², entropy, 1 where r left 1±Clip: T of each in turn
//
// Rows past the batch's end get 0.
type PPO struct {
	DOut, Out, Sample, Sums              *Tensor // Sample [B,4] or [B,T,4] and Sums [B,4T] in Batch space
	Clip, ValueCoef, EntropyCoef, Weight float32
}

// Tokens is T, the rows of an instance.
func (o *PPO) Tokens() int { return o.Out.Rows() / o.Out.Shape[0] }

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

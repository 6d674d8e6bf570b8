package kernel

// ImplicitQ is implicit Q-learning over sequences of tokens (Kostrikov et al. 2021) and its
// gradient. Values [B,T,2A+1] holds at each token two values of each of A actions, Q1 and Q2, and
// one of the state, v. A token counts if it has an action a (Labels[m,0], -1 for none) and the
// token behind it is a record of the same sequence, which tells what a gained. With
// u = min(Q1[a], Q2[a]) - v and y = Gains[Index[m+1,Gain]] + Discount·v[m+1]:
//
//	Q's loss = ½(Q1[a] - y)² + ½(Q2[a] - y)²
//	v's loss = |Expectile - [u < 0]|·u²
//	Weigh[m] = min(exp(Slope·u), Most); 0 for a token that does not count
//
// y, Weigh, and min(Q1, Q2) in v's loss have no gradient. DValues = Weight·gradient. Sums[b] = Q's
// loss, v's loss, Σ v, Σ 1 over the tokens that count. Rows past the batch's end get 0, and their
// Weigh is not written.
type ImplicitQ struct {
	DValues, Values      *Tensor // [B,T,2A+1]
	Labels, Index, First *Tensor // I32 [B,T,G], [B,T,F], [B,T]
	Weigh, Sums          *Tensor // [B,T]; [B,4], Batch space
	Gain, Type           int     // columns of Index
	Gains                []float32
	Discount, Expectile  float32
	Slope, Most, Weight  float32
}

// ImplicitSums is how many sums ImplicitQ leaves per instance.
const ImplicitSums = 4

// Kind names the op.
func (o *ImplicitQ) Kind() string { return "implicitq" }

// Stage: it compares with what was gained.
func (o *ImplicitQ) Stage() Stage { return StageLoss }

// Args visits the tensors.
func (o *ImplicitQ) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.Values, o.Labels, o.Index, o.First)
	visit(f, Write, o.DValues, o.Weigh, o.Sums)
}

// Actions is A.
func (o *ImplicitQ) Actions() int { return (o.Values.Cols() - 1) / 2 }

// Cost counts thirty operations a token, and the gradient's clearing.
func (o *ImplicitQ) Cost() Cost {
	return Cost{30*int64(o.Values.Rows()) + int64(o.Values.Len()), bytesOf(o)}
}

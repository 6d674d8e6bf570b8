package kernel

import "haul/internal/rng"

// Choice says how a rollout picks its next node.
type Choice uint8

// The choices.
const (
	// inverse CDF over nodes in order, one uniform a (instance, start, step): see Rollout
	Sample Choice = iota
	Greedy        // the most likely node, the lowest index on ties
	Replay        // the actions already in Actions
	Extend        // the actions already in Actions up to the first below 0, then as Greedy
)

// Clip is the bound of the pointer's logits.
const Clip = 10

// NearFloor is added to a squared distance before its logarithm is taken: nodes nearer than a
// hundredth of the square's side are alike.
const NearFloor = 1e-4

// Decoder is what a rollout and its gradient read of the policy: the absorbed projections of each
// node.
//
//	query     q = Node[cur] + Graph + Σ over k of c_k·Context_k
//	glimpse   g = per head, softmax over allowed j of q·Key_j/sqrt(D/H), times Value_j
//	logits    Clip·tanh(g·Pointer_j/sqrt(D) + bias) / temperature over allowed j
//	bias      (PairQuery[cur] + Σ over k of c_k·PairContext_k)·PairKey_j/sqrt(D)
//	          - Near·log sqrt(distance(cur, j)² + NearFloor)
//
// with c the vehicle's context features (RuleSet.Context). Without Pair the bias is that of the
// distance alone. A bias is added behind the glimpse, so that what is known of a pair of nodes need
// not pass through the glimpse's few heads.
type Decoder struct {
	Instances // of which Feature is not read

	Proj    *Tensor // [B,N,≥3D]: Node | Key | Value in its first 3D columns
	Pointer *Tensor // [B,N,D]: pointer keys with the glimpse's output matrix absorbed
	Graph   *Tensor // [B,D]
	Context *Tensor // a weight: [D], or [C,D] where the rule set has C > 1 context features
	Pair    *Tensor // [B,N,≥2D]: PairQuery | PairKey in its first 2D columns; nil: no such scores
	// as Context; with Pair
	PairContext *Tensor
	Heads       int
	Near        float32 // a constant; 0: distances do not speak in the logits
}

// Rollout builds routes for every instance and start: all decode steps in one op. Rules of CVRP
// (the other sets' are in rules.go): a visited customer and a demand over the load left are
// forbidden; the depot is forbidden at the depot while customers remain; when all are served only
// the depot is left; the row ends there. With Forced, start s of an instance begins at customer s+1
// and that first action is not scored. With Viewed instead, the policy chooses the first action of
// start s as if the vehicle, full and at the depot as ever, stood at customer s+1, which may be its
// choice. No demand may pass Capacity, and T must be at least RuleSet.MaxSteps, which no row
// outlasts.
//
// Where one node is allowed it is taken without computing: log-probability and entropy are 0, but
// the step counts as scored. Sample, at step t of start s of global instance i, draws u =
// rng.Float(word t%4 of Philox(Seed, index i, draw s<<16|t/4, Purpose)) and takes the first allowed
// node whose cumulative probability passes u times the total; if rounding leaves none, the last
// allowed. Greedy does not depend on the temperature. The actions that Extend is given must obey
// the rules; they are counted as steps and add nothing to LogProb and Entropy.
type Rollout struct {
	Decoder
	Actions *Tensor // I32 [B,S,T]; zero after the end
	Steps   *Tensor // I32 [B,S]: actions taken, the final return included
	Length  *Tensor // [B,S] route length
	LogProb *Tensor // [B,S] Σ log π of the scored actions, at the control block's temperature
	Entropy *Tensor // [B,S] mean entropy over the scored steps
	Choice  Choice
	Forced  bool
	Viewed  bool
	Seed    uint64
	Purpose rng.Purpose // the actions' stream
}

// Kind names the op.
func (o *Rollout) Kind() string {
	if o.Choice == Greedy || o.Choice == Extend {
		return "rollout.greedy"
	}
	return "rollout"
}

// Stage: it makes routes.
func (o *Rollout) Stage() Stage { return StageDecode }

func (d *Decoder) args(f func(*Tensor, Access)) {
	visit(f, Read, d.Proj, d.Pointer, d.Graph, d.Context, d.Pair, d.PairContext, d.PosX, d.PosY, d.Nodes)
}

// Args visits the tensors.
func (o *Rollout) Args(f func(*Tensor, Access)) {
	o.Decoder.args(f)
	switch o.Choice {
	case Replay:
		visit(f, Read, o.Actions)
	case Extend:
		visit(f, Update, o.Actions)
	default:
		visit(f, Write, o.Actions)
	}
	visit(f, Write, o.Steps, o.Length, o.LogProb, o.Entropy)
}

// stepCost is the FLOPs of one decode step of one row: three products of N·D multiply-adds.
func (d *Decoder) stepCost() int64 {
	return 6 * int64(d.Pointer.Shape[1]) * int64(d.Pointer.Cols())
}

// pairCost is the FLOPs of scoring all pairs of all instances once, and each node by the context's
// features: no decode step adds to them.
func (d *Decoder) pairCost() int64 {
	if d.Pair == nil {
		return 0
	}
	return 2 * int64(d.Pointer.Len()) * int64(d.Pointer.Shape[1]+len(d.Set.Context()))
}

// Cost assumes ExpectedSteps decode steps per row; the true number is only known once actions are
// drawn.
func (o *Rollout) Cost() Cost {
	b, s, _, n, _ := o.Dims()
	return Cost{int64(b*s)*ExpectedSteps(n)*o.stepCost() + o.pairCost(), bytesOf(o) - o.beside(o.Proj, 3) - o.beside(o.Pair, 2)}
}

// Fixed is the scores of pairs.
func (o *Rollout) Fixed() int64 { return o.pairCost() }

// beside is the bytes of the columns that lie in t behind the first few widths, and that the op
// leaves alone.
func (d *Decoder) beside(t *Tensor, widths int) int64 {
	if t == nil {
		return 0
	}
	return 4 * int64(t.Rows()) * int64(t.Cols()-widths*d.Pointer.Cols())
}

// ExpectedSteps is what routes of n nodes take with a return to the depot about every fifth
// customer.
func ExpectedSteps(n int) int64 { return int64(n-1) + int64(n+3)/5 }

// Dims returns B, S, T, N, D.
func (o *Rollout) Dims() (b, s, t, n, d int) {
	return o.Actions.Shape[0], o.Actions.Shape[1], o.Actions.Shape[2], o.Pointer.Shape[1], o.Pointer.Shape[2]
}

// RolloutGrad recomputes every scored decode step from the recorded actions, all at once, and
// returns the gradient of Σ over rows of Adv·LogProb - (c·Weight)·Entropy, with c the control
// block's coefficient Bonus. Since Entropy is a mean, a step's entropy weighs -c·Weight/(scored
// steps of its row). Rows past the batch's end weigh 0 in both.
type RolloutGrad struct {
	Decoder
	DProj    *Tensor // [B,N,≥3D]: its first 3D columns are written
	DPointer *Tensor // [B,N,D]
	DGraph   *Tensor // [B,D]
	DContext *Tensor // as Context, accumulated

	DPair        *Tensor // [B,N,≥2D]: its first 2D columns are written; with Pair
	DPairContext *Tensor // as PairContext, accumulated; with Pair

	Actions *Tensor
	Steps   *Tensor
	Adv     *Tensor // [B,S]: weight of each row's log-probability in the loss
	Weight  float32 // 1/(instances·starts): weight of each row's entropy, times the coefficient
	Bonus   string  // the entropy's coefficient in the control block
	Forced  bool
	Viewed  bool
}

// Coefficients names what the op reads of the control block.
func (o *RolloutGrad) Coefficients() []string { return []string{o.Bonus} }

// Kind names the op.
func (o *RolloutGrad) Kind() string { return "rollout.grad" }

// Args visits the tensors.
func (o *RolloutGrad) Args(f func(*Tensor, Access)) {
	o.Decoder.args(f)
	visit(f, Read, o.Actions, o.Steps, o.Adv)
	visit(f, Write, o.DProj, o.DPointer, o.DGraph, o.DPair)
	visit(f, Update, o.DContext, o.DPairContext)
}

// Cost counts the recomputed steps and twice that for their gradients.
func (o *RolloutGrad) Cost() Cost {
	n := o.Pointer.Shape[1]
	beside := o.beside(o.Proj, 3) + o.beside(o.DProj, 3) + o.beside(o.Pair, 2) + o.beside(o.DPair, 2)
	return Cost{3 * (int64(o.Adv.Len())*ExpectedSteps(n)*o.stepCost() + o.pairCost()), bytesOf(o) - beside}
}

// Fixed is the scores of pairs and their gradient.
func (o *RolloutGrad) Fixed() int64 { return 3 * o.pairCost() }

// Tabled is an op for whose instances a device makes tables over all pairs of nodes, in memory of
// no tensor: a CPU for one instance per worker at a time, a card for all of the batch.
type Tabled interface {
	Op
	TableBytes() int64 // of one instance
}

// TableBytes is what pairs and distances say to the pointer.
func (d *Decoder) TableBytes() int64 {
	if d.Pair == nil && d.Near == 0 {
		return 0
	}
	n := d.Pointer.Shape[1]
	return 4 * int64(n) * int64(Pad(n))
}

// TableBytes adds the gradient of the pairs' part.
func (o *RolloutGrad) TableBytes() int64 {
	if o.Pair == nil {
		return o.Decoder.TableBytes()
	}
	return 2 * o.Decoder.TableBytes()
}

// Expected is how many decode steps Cost assumes.
func (d *Decoder) Expected() int64 { return ExpectedSteps(d.Pointer.Shape[1]) }

// BaselineMode says what is subtracted from a route's length.
type BaselineMode uint8

// The baselines.
const (
	SharedMean BaselineMode = iota // the mean over the instance's starts (POMO)
	Given                          // Base[b], a greedy rollout of a frozen policy
	// a RunningMean as it stood before the step; the first batch only starts it
	Running
)

// Comparison says what the length of a route weighs.
type Comparison uint8

// The comparisons, of start i of S with length l, log-probability p and baseline b.
const (
	// Difference is l_i - b.
	Difference Comparison = iota
	// Standard is (l_i - b) / (d + SpreadFloor), with d the root of the mean of (l - b)² over the
	// instance's starts.
	Standard
	// Preference is the gradient with respect to p_i of the pairwise loss of Preference Optimization
	// (Pan et al. 2025), the mean over all S² pairs of -log σ(Alpha·(p_j - p_k)) where j is shorter
	// than k:
	//
	//	Alpha/S · (Σ over j shorter than i of σ(Alpha·(p_i - p_j))
	//	           - Σ over j longer than i of σ(Alpha·(p_j - p_i)))
	//
	// It asks which route is shorter and not by how much. Lengths that differ by no more than Tie of
	// the longer are equal: the same route summed from another customer on must not be preferred.
	//
	// A pair of the instance's shortest route, or of one that ties with it, weighs 1 + Leader times as
	// much: best-of-starts decoding keeps that route alone (Wang et al. 2024 raise its advantage
	// instead). With Alone it does so only where no other route ties with the shortest: if two starts
	// find equally short routes, dropping one of them does not change the best route, so its gradient
	// is zero.
	//
	// With a Margin the leader counts by how much it is shorter, as in that gradient: Leader times
	// (l_2 - l_1) / (Margin·l_1), up to MostMargins times, with l_2 the shortest length that does not
	// tie with l_1. Where there is none, no pair has a leader.
	//
	// With a Group of G, rows b to b+G-1 are one instance under G symmetries, b a multiple of G, and S
	// is that of all of them: each route is compared with those of the whole group. Then a pair within
	// a row of which one is the row's shortest weighs Leader more, too, so that the best of one row
	// counts beside the best of all.
	Preference
)

// What the comparisons take for nothing: lengths are of order 10, and a sum of a hundred legs in
// fp32 is good to about 1e-6 of itself.
const (
	SpreadFloor = 1e-3
	Tie         = 1e-5
)

// MostMargins bounds what one leader counts: early in training a few are shorter than all others by
// a tenth and more.
const MostMargins = 5

// Advantage: Adv[b,s] = By(Length[b,s])·Weight, and Base[b] where the op computes the baseline.
// Running with a Count of 0 has no baseline yet: Adv is 0 and Base the mean over the instance's
// starts. Rows past the batch's end get 0.
type Advantage struct {
	Adv, Length *Tensor // [B,S]
	LogProb     *Tensor // [B,S]: with Preference
	Base        *Tensor // [B,1]: read with Given, else written
	Mean, Count *Tensor // with Running: the scalars of the RunningMean
	Mode        BaselineMode
	By          Comparison
	Alpha       float32 // of Preference
	Leader      float32 // of Preference
	Alone       bool    // of Preference
	// of Preference: a share of the shortest length. 0: every leader counts the same
	Margin float32
	Group  int     // of Preference: 0 and 1 are a row by itself. A shard holds whole groups
	Weight float32 // 1/(instances·starts)
}

// Rows is how many rows are compared with one another.
func (o *Advantage) Rows() int { return max(1, o.Group) }

// Kind names the op.
func (o *Advantage) Kind() string { return "advantage" }

// Stage: it subtracts the baseline.
func (o *Advantage) Stage() Stage { return StageBaseline }

// Args visits the tensors.
func (o *Advantage) Args(f func(*Tensor, Access)) {
	visit(f, Read, o.Length, o.LogProb, o.Mean, o.Count)
	visit(f, Write, o.Adv)
	if o.Mode == Given {
		visit(f, Read, o.Base)
	} else {
		visit(f, Write, o.Base)
	}
}

// Cost counts two operations per row, and six per pair where rows are compared with one another.
func (o *Advantage) Cost() Cost {
	each := int64(2)
	if o.By == Preference {
		each = 6 * int64(o.Adv.Cols()) * int64(o.Rows())
	}
	return Cost{each * int64(o.Adv.Len()), bytesOf(o)}
}

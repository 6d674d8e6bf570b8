package kernel

// What a reader could break: the optimizer is three ops in this order, each with the whole flat
// gradient to itself. Reduce makes one gradient of all shards', an Exchange may make one of all
// processes', AdamW takes the norm of what is there then. An op that needs the whole, unclipped
// gradient of a step stands between the first and the last. Processes that cut the update into
// pieces take the norm's squares in fixed chunks, gather them, and add them up in the order in
// which one process would.

// Flat is an op over the flat buffers of gradients, weights and moments as a whole. It names none
// of them in Args and waits for every op recorded before it.
type Flat interface {
	Op
	Flat()
}

// Reduce sums the gradients of all shards in a fixed order, the tree's over lanes, into the flat
// gradient. With Every > 1 a step is one of Every parts of an update: gradients are added up over
// the parts, and the last part, State.Part = Every-1, has their sum. What follows it and is Flat
// runs with that part only.
type Reduce struct {
	Layout *Layout
	Every  int // 0 and 1: every step updates
}

// Kind names the op.
func (o *Reduce) Kind() string { return "reduce" }

// Flat says that the op owns the flat gradient.
func (o *Reduce) Flat() {}

// Args visits nothing: the op owns the flat gradient as a whole.
func (o *Reduce) Args(func(*Tensor, Access)) {}

// Cost counts one addition per weight: into how many partial sums a device cuts the batch is its
// own choice.
func (o *Reduce) Cost() Cost { return Cost{int64(o.Layout.Len), 8 * int64(o.Layout.Len)} }

// Peer is whoever stands between the reduction of the gradient and its use: other processes that
// train the same weights. All processes call the same methods in the same order, on the goroutine
// that drives the device.
type Peer interface {
	// Share is the part of every step that this process runs.
	Share() Share
	// Exchange replaces this process's gradient by everybody's, the same bits in each process: for a
	// device that updates all weights itself. It is called once per update; grad is the device's again
	// when it returns. An error ends the step before the update.
	Exchange(grad []float32) error
	// Sum replaces this process's numbers by everybody's sum, by the tree.
	Sum(v []float64) error
}

// Sharer is a Peer whose processes share the update too: each adds up and updates its Share.Piece
// of the weights and sends the others what has become of it. That moves the bytes of an Exchange,
// and nobody updates what another does.
type Sharer interface {
	Peer
	// Scatter sends every process its piece of grad, cut in whole units, and returns everybody's
	// gradients of this process's piece, by rank, its own in its place in grad. Added up by the tree
	// they are the sum of all. They are the device's until the next Scatter. An error ends the step
	// before the update.
	Scatter(grad []float32, unit int) (parts [][]float32, err error)
	// AllGather completes flat, of which this process has its own piece, by the others'. An error
	// leaves flat half old: the run must end and not save.
	AllGather(flat []float32, unit int) error
	// AllGatherSums does so for numbers, in units of one.
	AllGatherSums(v []float64) error
}

// Exchange lets a Peer replace the reduced gradient before it is clipped.
type Exchange struct {
	Layout *Layout
	Peer   Peer
}

// Kind names the op.
func (o *Exchange) Kind() string { return "exchange" }

// Stage says that its time is spent on other processes.
func (o *Exchange) Stage() Stage { return StageExchange }

// Flat says that the op owns the flat gradient.
func (o *Exchange) Flat() {}

// Args visits nothing: the op owns the flat gradient as a whole.
func (o *Exchange) Args(func(*Tensor, Access)) {}

// Cost counts the gradient read and written once.
func (o *Exchange) Cost() Cost { return Cost{0, 8 * int64(o.Layout.Len)} }

// AdamW clips the reduced gradient by its global norm and updates weights and moments in one pass
// over flat buffers. A norm that is not finite skips the update and marks the step in
// Metrics.BadStep. In order, with t = State.Step + 1, which the op then stores:
//
//	g = gradient · (MaxNorm/(norm+1e-6) where MaxNorm > 0 and norm > MaxNorm)
//	m = Beta1·m + (1-Beta1)·g;  v = Beta2·v + (1-Beta2)·g²
//	w -= lr·(m/(1-Beta1^t)/(sqrt(v/(1-Beta2^t))+Eps) + Decay·w), biases and norms included
//
// lr is the control block's, times min(1, t/Warmup) where Warmup > 0. Where Total > 0 and t >
// Warmup it follows a cosine from there to Floor times the control block's at step Total: c·(Floor
// + (1-Floor)·(1+cos(π·(t-Warmup)/(Total-Warmup)))/2), t at most Total.
//
// Where Side > 0, matrices that cut into blocks of Side rows and columns (Blocks) are updated by
// Muon, with the same g and lr. M, a block's momentum, lies where m does, and its v stays as it
// was:
//
//	M = 0.95·M + g;  G = g + 0.95·M;  X = G/(|G|+1e-7), |G| the root of the sum of its squares
//	five times X = 3.4445·X - 4.7750·A·X + 2.0315·A·A·X, with A = X·Xᵀ
//	w -= lr·(0.2·sqrt(Side)·X + Decay·w)
type AdamW struct {
	Layout              *Layout
	Beta1, Beta2        float64
	Eps, Decay, MaxNorm float32 // MaxNorm 0: no clipping
	Warmup, Total       int
	Floor               float32
	Side                int // of Muon's blocks; 0: AdamW for all
}

// Kind names the op, by what takes its time.
func (o *AdamW) Kind() string {
	if o.Side > 0 {
		return "muon"
	}
	return "adamw"
}

// Flat says that the op owns the flat buffers.
func (o *AdamW) Flat() {}

// Args visits nothing: the op owns the flat buffers as a whole.
func (o *AdamW) Args(func(*Tensor, Access)) {}

// Cost counts sixteen operations and seven four-byte accesses per weight. In Muon's blocks there
// are five, since second moments are left alone, and the three products of its rounds, half of the
// two whose results are symmetric.
func (o *AdamW) Cost() Cost {
	c := Cost{16 * int64(o.Layout.Len), 28 * int64(o.Layout.Len)}
	if o.Side > 0 {
		blocks, square := int64(len(o.Blocks())), int64(o.Side*o.Side)
		c.FLOPs += MuonRounds * (1 + 1 + 2) * square * int64(o.Side) * blocks
		c.Bytes -= 8 * square * blocks
	}
	return c
}

package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

const (
	decisionBytes = 48      // sizeof(Decision), src/routing/decision.cuh
	gradRows      = 64      // ROWS of src/routing/grad.cu
	gradScratch   = 5 << 28 // bytes of glimpses and gradients of one chunk of instances
)

// headShared is the shared memory of one head's gradient (grad_heads), in bytes.
func (p policy) headShared(t int) int {
	np := 8 * t
	lx, ly := np+(40-np%32)%32, p.hd+8
	return 4 * (4*np*p.hd + gradRows*(lx+2*ly+2) + 2*p.hd)
}

// gradTiles is tilesFor where the gradient has kernels for the head's width and they fit.
func (b *binder) gradTiles(p policy) int {
	t := p.tilesFor()
	if p.hd != 16 && p.hd != 32 || max(p.instanceShared(t), p.headShared(t)) > b.maxShared {
		return 0
	}
	return t
}

// gradPath says in a few words how the rollout's gradient is computed.
func (b *binder) gradPath(o *kernel.RolloutGrad) string {
	p := b.policy(&o.Decoder)
	if _, yes := b.streamGradServes(o, p); yes && b.halfGradTiles(o, p) == 0 {
		return "decisions on tensor cores, projections from the card's caches"
	}
	if b.gradTiles(p) == 0 && b.halfGradTiles(o, p) == 0 {
		return fmt.Sprintf("no tensor-core gradient for %d nodes, heads of %d: one decision at a time", p.n, p.hd)
	}
	return "decisions on tensor cores"
}

// slowly says that the rollout's gradient takes one decision at a time, and which setting would
// change that; "" where tensor cores take it.
func (b *binder) slowly(o *kernel.RolloutGrad) string {
	p := b.policy(&o.Decoder)
	if _, yes := b.streamGradServes(o, p); yes || b.gradNearServes(o, p) || b.gradTiles(p) > 0 || b.halfGradTiles(o, p) > 0 {
		return ""
	}
	way := "fewer customers"
	switch {
	case p.hd != 16 && p.hd != 32:
		way = "heads of 16 or 32 columns (model.hidden_dim over model.num_heads)"
	case p.d != halfWidth:
		way = fmt.Sprintf("model.hidden_dim=%d", halfWidth)
	case b.precision == FP32:
		way = "--precision tf32 or bf16"
	}
	return fmt.Sprintf("the gradient of routes over %d nodes takes one decision at a time here, many times slower than by tensor cores; %s would bring those", p.n, way)
}

func (b *binder) rolloutGrad(o *kernel.RolloutGrad) ([]launch, error) {
	p := b.policy(&o.Decoder)
	if p.n > mostStreamed {
		return nil, fmt.Errorf("gradient of routes over %d nodes: a GPU trains on at most %d, and decodes up to %d; use --device cpu", p.n, mostStreamed, mostDecoded)
	}
	instances := o.Actions.Shape[0]
	dcontext := b.scratch(4 * instances * p.seen * p.d)
	var ls []launch
	if b.gradNearServes(o, p) {
		ls = []launch{b.gradNear(o, p, dcontext)}
	} else if t := b.halfGradTiles(o, p); t > 0 {
		ls = b.gradHalf(o, p, t, dcontext)
	} else if t := b.gradTiles(p); t > 0 {
		ls = b.gradChunks(o, p, t, dcontext)
	} else if g, yes := b.streamGradServes(o, p); yes {
		ls = b.gradStream(o, g, dcontext)
	} else {
		var err error
		if ls, err = b.gradPlain(o, p, dcontext); err != nil {
			return nil, err
		}
	}
	return append(ls, b.sumContext(o.DContext, dcontext, instances, 1, p.seen*p.d)), nil
}

// Sizes of src/routing/grad_near.cu.
const (
	nearGradSteps = 32
	nearGradHead  = 32
	nearGradLine  = nearGradHead + 8 // floats of a row of decisions in shared memory
)

// gradNearServes reports whether one kernel does the whole gradient, a block an instance: few
// nodes, one short route, heads as tiny_1 has them, and scores to which nothing is added.
func (b *binder) gradNearServes(o *kernel.RolloutGrad, p policy) bool {
	return b.precision != FP32 && !p.bias && p.n <= nearNodes && p.heads == sixteenHeads && p.hd == nearGradHead && p.tilesFor() > 0 &&
		o.Actions.Shape[1] == 1 && o.Actions.Shape[2] <= nearGradSteps
}

func (b *binder) gradNear(o *kernel.RolloutGrad, p policy, dcontext uint64) launch {
	head := 2*nearGradSteps*nearGradLine + nearNodes*nearGradHead // floats that a head has for itself
	shared := 4 * (3*nearNodes*p.d + 2*p.d + nearNodes*(p.d+8) + nearGradSteps*nearNodes*p.heads + p.heads*head)
	return launch{module: "grad_near", kernel: "grad_near", grid: dim3{o.Actions.Shape[0], 1, 1}, block: dim3{32 * p.heads, 1, 1},
		shared: shared, args: []any{b.addr(o.DProj), b.addr(o.DPointer), b.addr(o.DGraph), dcontext, b.addr(o.Actions), b.addr(o.Steps),
			b.addr(o.Adv), b.addr(o.Proj), b.addr(o.Pointer), b.addr(o.Graph), b.addr(o.Context), b.addr(o.Nodes), b.control, i32(p.n),
			i32(p.stride), i32(o.DProj.Stride), i32(o.Actions.Shape[2]), o.Capacity, begins(o.Forced, o.Viewed), o.Weight, p.scale, p.pointerScale,
			b.coefficient(o.Bonus)}}
}

func (b *binder) gradPlain(o *kernel.RolloutGrad, p policy, dcontext uint64) ([]launch, error) {
	shared := 4 * ((5+p.seen)*p.d + 2*p.heads*p.n + 4*p.n)
	if shared > b.maxShared {
		return nil, fmt.Errorf("rollout gradient of %d nodes: %d bytes of shared memory, the GPU has %d a block", p.n, shared, b.maxShared)
	}
	biases, ls := b.biasTables(&o.Decoder, p, o.Actions.Shape[0], 1)
	pairs := b.pairGrad(o, p, p.seen)
	ls = append(ls, launch{module: ruled("rollout_grad", p.rules.Set), kernel: "grad_plain", grid: dim3{o.Actions.Shape[0], 1, 1}, block: dim3{256, 1, 1}, shared: shared,
		args: []any{b.addr(o.DProj), b.addr(o.DPointer), b.addr(o.DGraph), dcontext, b.addr(o.Actions), b.addr(o.Steps), b.addr(o.Adv),
			b.addr(o.Proj), b.addr(o.Pointer), b.addr(o.Graph), b.addr(o.Context), b.addr(o.Nodes), b.control, i32(p.n), i32(p.stride),
			i32(o.DProj.Stride), i32(p.heads), i32(p.hd), i32(o.Actions.Shape[1]), i32(o.Actions.Shape[2]), o.Capacity, begins(o.Forced, o.Viewed),
			o.Weight, p.scale, p.pointerScale, b.coefficient(o.Bonus), biases, pairs.tables, i32(p.biasWide())}})
	return append(ls, b.backPairs(o, p, pairs, 0, 1)...), nil
}

// gradChunks walks, goes forward and goes back, some instances at a time so that what lies between
// fits gradScratch.
func (b *binder) gradChunks(o *kernel.RolloutGrad, p policy, t int, dcontext uint64) []launch {
	instances, starts, limit := o.Actions.Shape[0], o.Actions.Shape[1], o.Actions.Shape[2]
	room := starts * limit // decisions an instance may have
	chunk := chunkOf(instances, room*4*(8*t+p.d), b.sms)
	decisions, order, counts := b.scratch(chunk*room*decisionBytes), b.scratch(chunk*room*4), b.scratch(chunk*4)
	dus, glimpses := b.scratch(chunk*room*4*8*t), b.scratch(chunk*room*4*p.d)
	module := fmt.Sprintf("grad_%s_%d", b.tensorPrecision(), 8*t)
	biases, ls := b.biasTables(&o.Decoder, p, instances, p.dotUnit())
	pairs := b.pairGrad(o, p, 1)
	for first := 0; first < instances; first += chunk {
		count := min(chunk, instances-first)
		splits := min(ceil(b.sms, count), ceil(room, 128))
		ls = append(ls,
			launch{module: "rollout_grad", kernel: "walk", grid: dim3{count, 1, 1}, block: dim3{32 * min(starts, 16), 1, 1}, shared: 4 * (starts + 1),
				args: []any{decisions, order, counts, b.addr(o.Actions), b.addr(o.Steps), b.addr(o.Adv), b.addr(o.Nodes), b.control, i32(first),
					i32(p.n), i32(starts), i32(limit), o.Capacity, begins(o.Forced, o.Viewed), o.Weight, b.coefficient(o.Bonus)}},
			launch{module: module, kernel: "grad_rows", grid: dim3{count, splits, 1}, block: dim3{256, 1, 1},
				shared: p.instanceShared(t),
				args: []any{dus, glimpses, decisions, order, counts, b.addr(o.Proj), b.addr(o.Pointer), b.addr(o.Graph), b.addr(o.Context), b.control,
					i32(first), i32(p.n), i32(p.stride), i32(p.heads), i32(p.hd), i32(room), i32(splits), p.scale, p.pointerScale, biases, i32(p.biasWide())}},
			launch{module: module, kernel: fmt.Sprint("grad_heads_", p.hd), grid: dim3{count, p.heads, 1}, block: dim3{128, 1, 1},
				shared: p.headShared(t),
				args: []any{b.addr(o.DProj), b.addr(o.DPointer), b.addr(o.DGraph), dcontext, dus, glimpses, decisions, order, counts, b.addr(o.Proj),
					b.addr(o.Pointer), b.addr(o.Graph), b.addr(o.Context), i32(first), i32(p.n), i32(p.stride), i32(o.DProj.Stride), i32(p.heads),
					i32(room), p.scale}})
		if pairs.tables != 0 {
			ls = append(ls, launch{module: "biases", kernel: "bias_listed", grid: dim3{count, 1, 1}, block: dim3{128, 1, 1}, shared: 4 * p.n * p.biasWide(),
				args: []any{pairs.of(p, first), dus, decisions, order, counts, i32(p.n), i32(room), i32(8 * t), i32(p.biasWide())}})
		}
	}
	return append(ls, b.backPairs(o, p, pairs, 0, 1)...)
}

// chunkOf is how many instances of `each` bytes go together: all, or what fits gradScratch in
// halves of the card's multiprocessors, so that two blocks of a head on each come out even.
func chunkOf(instances, each, sms int) int {
	fit := max(1, gradScratch/each)
	if instances <= fit {
		return instances
	}
	if half := max(1, sms/2); fit > half {
		fit -= fit % half
	}
	return fit
}

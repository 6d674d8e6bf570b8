package routing

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

const (
	decisionBytes = 48      // sizeof(Decision), src/decision.cuh
	gradRows      = 64      // ROWS of src/grad.cu
	gradScratch   = 5 << 28 // bytes of glimpses and gradients of one chunk of instances
)

// headShared is the shared memory of one head's gradient (grad_heads), in bytes.
func (p policy) headShared(t int) int {
	np := 8 * t
	lx, ly := np+(40-np%32)%32, p.hd+8
	return 4 * (4*np*p.hd + gradRows*(lx+2*ly+2) + 2*p.hd)
}

// gradTiles is tilesFor where the gradient has kernels for the head's width and they fit.
func gradTiles(b *bind.Binder, p policy) int {
	t := p.tilesFor()
	if p.hd != 16 && p.hd != 32 || max(p.instanceShared(t), p.headShared(t)) > b.MaxShared {
		return 0
	}
	return t
}

// GradPath says in a few words how the rollout's gradient is computed.
func GradPath(b *bind.Binder, o *kernel.RolloutGrad) string {
	p := policyOf(b, &o.Decoder)
	if _, yes := streamGradServes(b, o, p); yes && halfGradTiles(b, o, p) == 0 {
		return "decisions on tensor cores, projections from the card's caches"
	}
	if gradTiles(b, p) == 0 && halfGradTiles(b, o, p) == 0 {
		return fmt.Sprintf("no tensor-core gradient for %d nodes, heads of %d: one decision at a time", p.n, p.hd)
	}
	return "decisions on tensor cores"
}

// Slowly says that the rollout's gradient takes one decision at a time, and which setting would
// change that; "" where tensor cores take it.
func Slowly(b *bind.Binder, o *kernel.RolloutGrad) string {
	p := policyOf(b, &o.Decoder)
	if _, yes := streamGradServes(b, o, p); yes || gradNearServes(b, o, p) || gradTiles(b, p) > 0 || halfGradTiles(b, o, p) > 0 {
		return ""
	}
	way := "fewer customers"
	switch {
	case p.hd != 16 && p.hd != 32:
		way = "heads of 16 or 32 columns (model.hidden_dim over model.num_heads)"
	case p.d != halfWidth:
		way = fmt.Sprintf("model.hidden_dim=%d", halfWidth)
	case b.Precision == bind.FP32:
		way = "--precision tf32 or bf16"
	}
	return fmt.Sprintf("the gradient of routes over %d nodes takes one decision at a time here, many times slower than by tensor cores; %s would bring those", p.n, way)
}

func RolloutGrad(b *bind.Binder, o *kernel.RolloutGrad) ([]bind.Launch, error) {
	p := policyOf(b, &o.Decoder)
	if p.n > mostStreamed {
		return nil, fmt.Errorf("gradient of routes over %d nodes: a GPU trains on at most %d, and decodes up to %d; use --device cpu", p.n, mostStreamed, mostDecoded)
	}
	instances := o.Actions.Shape[0]
	dcontext := b.Scratch(4 * instances * p.seen * p.d)
	var ls []bind.Launch
	if gradNearServes(b, o, p) {
		ls = []bind.Launch{gradNear(b, o, p, dcontext)}
	} else if t := halfGradTiles(b, o, p); t > 0 {
		ls = gradHalf(b, o, p, t, dcontext)
	} else if t := gradTiles(b, p); t > 0 {
		ls = gradChunks(b, o, p, t, dcontext)
	} else if g, yes := streamGradServes(b, o, p); yes {
		ls = gradStream(b, o, g, dcontext)
	} else {
		var err error
		if ls, err = gradPlain(b, o, p, dcontext); err != nil {
			return nil, err
		}
	}
	return append(ls, sumContext(b, o.DContext, dcontext, instances, 1, p.seen*p.d)), nil
}

// Sizes of src/grad_near.cu.
const (
	nearGradSteps = 32
	nearGradHead  = 32
	nearGradLine  = nearGradHead + 8 // floats of a row of decisions in shared memory
)

// gradNearServes reports whether one kernel does the whole gradient, a block an instance: few
// nodes, one short route, heads as tiny_1 has them, and scores to which nothing is added.
func gradNearServes(b *bind.Binder, o *kernel.RolloutGrad, p policy) bool {
	return b.Precision != bind.FP32 && !p.bias && p.n <= bind.NearNodes && p.heads == bind.SixteenHeads && p.hd == nearGradHead && p.tilesFor() > 0 &&
		o.Actions.Shape[1] == 1 && o.Actions.Shape[2] <= nearGradSteps
}

func gradNear(b *bind.Binder, o *kernel.RolloutGrad, p policy, dcontext uint64) bind.Launch {
	head := 2*nearGradSteps*nearGradLine + bind.NearNodes*nearGradHead // floats that a head has for itself
	shared := 4 * (3*bind.NearNodes*p.d + 2*p.d + bind.NearNodes*(p.d+8) + nearGradSteps*bind.NearNodes*p.heads + p.heads*head)
	return bind.Launch{Module: "grad_near", Kernel: "grad_near", Grid: bind.Dim3{o.Actions.Shape[0], 1, 1}, Block: bind.Dim3{32 * p.heads, 1, 1},
		Shared: shared, Args: []any{b.Addr(o.DProj), b.Addr(o.DPointer), b.Addr(o.DGraph), dcontext, b.Addr(o.Actions), b.Addr(o.Steps),
			b.Addr(o.Adv), b.Addr(o.Proj), b.Addr(o.Pointer), b.Addr(o.Graph), b.Addr(o.Context), b.Addr(o.Nodes), b.Control, bind.I32(p.n),
			bind.I32(p.stride), bind.I32(o.DProj.Stride), bind.I32(o.Actions.Shape[2]), o.Capacity, begins(o.Forced, o.Viewed), o.Weight, p.scale, p.pointerScale,
			b.Coefficient(o.Bonus)}}
}

func gradPlain(b *bind.Binder, o *kernel.RolloutGrad, p policy, dcontext uint64) ([]bind.Launch, error) {
	shared := 4 * ((5+p.seen)*p.d + 2*p.heads*p.n + 4*p.n)
	if shared > b.MaxShared {
		return nil, fmt.Errorf("rollout gradient of %d nodes: %d bytes of shared memory, the GPU has %d a block", p.n, shared, b.MaxShared)
	}
	biases, ls := biasTables(b, &o.Decoder, p, o.Actions.Shape[0], 1)
	pairs := newPairGrad(b, o, p, p.seen)
	ls = append(ls, bind.Launch{Module: Ruled("rollout_grad", p.rules.Set), Kernel: "grad_plain", Grid: bind.Dim3{o.Actions.Shape[0], 1, 1}, Block: bind.Dim3{256, 1, 1}, Shared: shared,
		Args: []any{b.Addr(o.DProj), b.Addr(o.DPointer), b.Addr(o.DGraph), dcontext, b.Addr(o.Actions), b.Addr(o.Steps), b.Addr(o.Adv),
			b.Addr(o.Proj), b.Addr(o.Pointer), b.Addr(o.Graph), b.Addr(o.Context), b.Addr(o.Nodes), b.Control, bind.I32(p.n), bind.I32(p.stride),
			bind.I32(o.DProj.Stride), bind.I32(p.heads), bind.I32(p.hd), bind.I32(o.Actions.Shape[1]), bind.I32(o.Actions.Shape[2]), o.Capacity, begins(o.Forced, o.Viewed),
			o.Weight, p.scale, p.pointerScale, b.Coefficient(o.Bonus), biases, pairs.tables, bind.I32(p.biasWide())}})
	return append(ls, backPairs(b, o, p, pairs, 0, 1)...), nil
}

// gradChunks walks, goes forward and goes back, some instances at a time so that what lies between
// fits gradScratch.
func gradChunks(b *bind.Binder, o *kernel.RolloutGrad, p policy, t int, dcontext uint64) []bind.Launch {
	instances, starts, limit := o.Actions.Shape[0], o.Actions.Shape[1], o.Actions.Shape[2]
	room := starts * limit // decisions an instance may have
	chunk := chunkOf(instances, room*4*(8*t+p.d), b.SMs)
	decisions, order, counts := b.Scratch(chunk*room*decisionBytes), b.Scratch(chunk*room*4), b.Scratch(chunk*4)
	dus, glimpses := b.Scratch(chunk*room*4*8*t), b.Scratch(chunk*room*4*p.d)
	module := fmt.Sprintf("grad_%s_%d", tensorPrecision(b), 8*t)
	biases, ls := biasTables(b, &o.Decoder, p, instances, p.dotUnit())
	pairs := newPairGrad(b, o, p, 1)
	for first := 0; first < instances; first += chunk {
		count := min(chunk, instances-first)
		splits := min(bind.Ceil(b.SMs, count), bind.Ceil(room, 128))
		ls = append(ls,
			bind.Launch{Module: "rollout_grad", Kernel: "walk", Grid: bind.Dim3{count, 1, 1}, Block: bind.Dim3{32 * min(starts, 16), 1, 1}, Shared: 4 * (starts + 1),
				Args: []any{decisions, order, counts, b.Addr(o.Actions), b.Addr(o.Steps), b.Addr(o.Adv), b.Addr(o.Nodes), b.Control, bind.I32(first),
					bind.I32(p.n), bind.I32(starts), bind.I32(limit), o.Capacity, begins(o.Forced, o.Viewed), o.Weight, b.Coefficient(o.Bonus)}},
			bind.Launch{Module: module, Kernel: "grad_rows", Grid: bind.Dim3{count, splits, 1}, Block: bind.Dim3{256, 1, 1},
				Shared: p.instanceShared(t),
				Args: []any{dus, glimpses, decisions, order, counts, b.Addr(o.Proj), b.Addr(o.Pointer), b.Addr(o.Graph), b.Addr(o.Context), b.Control,
					bind.I32(first), bind.I32(p.n), bind.I32(p.stride), bind.I32(p.heads), bind.I32(p.hd), bind.I32(room), bind.I32(splits), p.scale, p.pointerScale, biases, bind.I32(p.biasWide())}},
			bind.Launch{Module: module, Kernel: fmt.Sprint("grad_heads_", p.hd), Grid: bind.Dim3{count, p.heads, 1}, Block: bind.Dim3{128, 1, 1},
				Shared: p.headShared(t),
				Args: []any{b.Addr(o.DProj), b.Addr(o.DPointer), b.Addr(o.DGraph), dcontext, dus, glimpses, decisions, order, counts, b.Addr(o.Proj),
					b.Addr(o.Pointer), b.Addr(o.Graph), b.Addr(o.Context), bind.I32(first), bind.I32(p.n), bind.I32(p.stride), bind.I32(o.DProj.Stride), bind.I32(p.heads),
					bind.I32(room), p.scale}})
		if pairs.tables != 0 {
			ls = append(ls, bind.Launch{Module: "biases", Kernel: "bias_listed", Grid: bind.Dim3{count, 1, 1}, Block: bind.Dim3{128, 1, 1}, Shared: 4 * p.n * p.biasWide(),
				Args: []any{pairs.of(p, first), dus, decisions, order, counts, bind.I32(p.n), bind.I32(room), bind.I32(8 * t), bind.I32(p.biasWide())}})
		}
	}
	return append(ls, backPairs(b, o, p, pairs, 0, 1)...)
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

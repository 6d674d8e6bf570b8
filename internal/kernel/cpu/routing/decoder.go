package routing

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
	"haul/internal/rules/walk"
)

// DecodeRows is how many decode steps are computed together: a matrix product instead of as many
// vector products, still small enough to stay in cache.
const DecodeRows = 64

// decoder computes a block of decode steps of one instance, forward, for the rollout and for its
// gradient.
type decoder struct {
	proj, pointer, graph       run.Ref
	posX, posY, nodes          run.Ref
	context, pair, pairContext run.Ref
	n, d, heads, hd, ld, words int
	seen                       int // context features
	rules                      kernel.Rules
	scale, pointerScale, near  float32
	pairs                      bool
	machines                   []*walk.Machine // by worker, where the rules are a problem file's
}

func newDecoder(b *run.Binder, o *kernel.Decoder) decoder {
	n, d := o.Pointer.Shape[1], o.Pointer.Shape[2]
	return decoder{
		machines: machines(b, o.Set, n, DecodeRows),
		proj:     b.Ref(o.Proj), pointer: b.Ref(o.Pointer), graph: b.Ref(o.Graph), context: b.Ref(o.Context),
		posX: b.Ref(o.PosX), posY: b.Ref(o.PosY), nodes: b.Ref(o.Nodes),
		n: n, d: d, heads: o.Heads, hd: d / o.Heads, ld: kernel.Pad(n), words: isa.Words(n), seen: len(o.Set.Context()), rules: o.Rules,
		scale: float32(1 / math.Sqrt(float64(d/o.Heads))), pointerScale: float32(1 / math.Sqrt(float64(d))),
		near: o.Near, pairs: o.Pair != nil, pair: b.Ref(o.Pair), pairContext: b.Ref(o.PairContext),
	}
}

// block is the scratch of one block of decode steps. Rows are (start, step) pairs of one instance.
type block struct {
	kt, lt           []float32 // [D][ld]: keys and pointer keys, a column a node
	q, g             []float32 // [rows][D] queries and glimpses
	s                []float32 // [H][rows][ld] glimpse weights
	p, lp, th        []float32 // [rows][ld]
	ent              []float32 // [rows]
	seen             []float32 // [rows][seen]: context features
	mask             []uint64  // [rows][words]
	proj, ptr, graph []float32 // the instance's inputs
	context          []float32 // the weight
	posX, posY       []float32
	// [N][ld]: what the way from a node to another adds to the pointer's dot product; nil where
	// nothing
	bias []float32
	// [seen][ld]: what a context feature of 1 adds to it for each node; nil without pairs
	biasContext       []float32
	pt                []float32 // [D][ld]: pair keys, a column a node
	pair, pairContext []float32 // the instance's inputs, rows pairStride apart, and the weight
	at                [DecodeRows]int32
	in                instance
	stride            int // of proj
	pairStride        int
}

// blockFloats and blockWords are the scratch a block takes.
func (d *decoder) blockFloats() int {
	bias := 0
	if d.biased() {
		bias = d.n * d.ld
	}
	if d.pairs {
		bias += d.seen*d.ld + d.d*d.ld
	}
	return 2*d.d*d.ld + DecodeRows*(2*d.d+(d.heads+3)*d.ld+1+d.seen) + bias
}

// biased reports whether anything is added to the pointer's dot products.
func (d *decoder) biased() bool { return d.near != 0 || d.pairs }

func (d *decoder) blockWords() int { return DecodeRows * d.words }

// carve lays a block out in the worker's scratch and returns what is left of it.
func (d *decoder) carve(w *run.Worker) (k block, rest []float32) {
	rest = w.Scratch
	take := func(n int) []float32 {
		s := rest[:n:n]
		rest = rest[n:]
		return s
	}
	k.kt, k.lt = take(d.d*d.ld), take(d.d*d.ld)
	k.q, k.g = take(DecodeRows*d.d), take(DecodeRows*d.d)
	k.s = take(d.heads * DecodeRows * d.ld)
	k.p, k.lp, k.th = take(DecodeRows*d.ld), take(DecodeRows*d.ld), take(DecodeRows*d.ld)
	k.ent, k.seen = take(DecodeRows), take(DecodeRows*d.seen)
	if d.biased() {
		k.bias = take(d.n * d.ld)
	}
	if d.pairs {
		k.biasContext, k.pt = take(d.seen*d.ld), take(d.d*d.ld)
		k.pairContext, k.pairStride = d.pairContext.Of(w), d.pair.Stride
	}
	k.mask = w.Words[:DecodeRows*d.words]
	k.context, k.stride = d.context.Of(w), d.proj.Stride
	return k, rest
}

// open points the block at instance i and transposes its keys.
func (d *decoder) open(w *run.Worker, k *block, i int) {
	k.proj = d.proj.Of(w)[i*d.n*k.stride:]
	k.ptr = d.pointer.Of(w)[i*d.n*d.d:][:d.n*d.d]
	k.graph = d.graph.Of(w)[i*d.d:][:d.d]
	k.posX, k.posY = d.posX.Of(w)[i*d.n:][:d.n], d.posY.Of(w)[i*d.n:][:d.n]
	k.in = d.instance(w, i)
	w.Prims.Transpose(k.kt, d.ld, k.proj[d.d:], k.stride, d.n, d.d)
	w.Prims.Transpose(k.lt, d.ld, k.ptr, d.d, d.n, d.d)
	d.measure(k)
	if d.pairs {
		k.pair = d.pair.Of(w)[i*d.n*k.pairStride:]
		d.match(w, k)
	}
}

// measure tables what distances add to dot products, before these are scaled.
func (d *decoder) measure(k *block) {
	if d.near == 0 {
		return
	}
	scale := -0.5 * float64(d.near) / float64(d.pointerScale)
	for a := range d.n {
		row := k.bias[a*d.ld:][:d.ld]
		for b := range a + 1 {
			dx, dy := float64(k.posX[a]-k.posX[b]), float64(k.posY[a]-k.posY[b])
			v := float32(scale * math.Log(dx*dx+dy*dy+kernel.NearFloor))
			row[b], k.bias[b*d.ld+a] = v, v
		}
	}
}

// match adds the dot products of pairs to the table, which they begin where distances say nothing,
// and makes the context features' rows.
func (d *decoder) match(w *run.Worker, k *block) {
	w.Prims.Transpose(k.pt, d.ld, k.pair[d.d:], k.pairStride, d.n, d.d)
	g := isa.GemmArgs{C: isa.Ptr(k.bias), A: isa.Ptr(k.pair), B: isa.Ptr(k.pt), M: d.n, N: d.n, K: d.d,
		LDC: d.ld, ARS: k.pairStride, AKS: 1, BKS: d.ld, BPS: isa.Panel}
	if d.near != 0 {
		g.R, g.LDR = g.C, g.LDC
	}
	w.Product(g)
	w.Product(isa.GemmArgs{C: isa.Ptr(k.biasContext), A: isa.Ptr(k.pairContext), B: isa.Ptr(k.pt), M: d.seen, N: d.n, K: d.d,
		LDC: d.ld, ARS: d.d, AKS: 1, BKS: d.ld, BPS: isa.Panel})
}

// query sets row r's query for a vehicle.
func (d *decoder) query(w *run.Worker, k *block, r int, v *vehicle) {
	seen := k.seen[r*d.seen:][:d.seen]
	v.context(seen, k.in)
	k.at[r] = v.from()
	w.Prims.Query(k.q[r*d.d:][:d.d], k.proj[int(v.from())*k.stride:][:d.d], k.graph, k.context[:d.d], seen[0])
}

// further adds to `rows` rows of y, each ld wide, the context features past the first times their
// rows of weights, of which n columns count.
func (d *decoder) further(w *run.Worker, k *block, y, weights []float32, rows, n, ld int) {
	if d.seen == 1 {
		return
	}
	w.Product(isa.GemmArgs{C: isa.Ptr(y), A: isa.Ptr(k.seen[1:]), B: isa.Ptr(weights[ld:]), R: isa.Ptr(y), M: rows, N: n, K: d.seen - 1,
		LDC: ld, ARS: d.seen, AKS: 1, BKS: ld, BPS: isa.Panel, LDR: ld})
}

// forward computes glimpse, logits and distribution of the block's first `rows` rows.
func (d *decoder) forward(w *run.Worker, k *block, rows int, mult float32) {
	d.further(w, k, k.q, k.context, rows, d.d, d.d)
	for h := range d.heads {
		s := k.s[h*DecodeRows*d.ld:]
		w.Product(isa.GemmArgs{C: isa.Ptr(s), A: isa.Ptr(k.q[h*d.hd:]), B: isa.Ptr(k.kt[h*d.hd*d.ld:]), M: rows, N: d.ld, K: d.hd,
			LDC: d.ld, ARS: d.d, AKS: 1, BKS: d.ld, BPS: isa.Panel})
		w.Prims.SoftmaxMask(s[:rows*d.ld], k.mask, rows, d.n, d.ld, d.words, d.scale)
		w.Product(isa.GemmArgs{C: isa.Ptr(k.g[h*d.hd:]), A: isa.Ptr(s), B: isa.Ptr(k.proj[2*d.d+h*d.hd:]), M: rows, N: d.hd, K: d.n,
			LDC: d.d, ARS: d.ld, AKS: 1, BKS: k.stride, BPS: isa.Panel})
	}
	w.Product(isa.GemmArgs{C: isa.Ptr(k.p), A: isa.Ptr(k.g), B: isa.Ptr(k.lt), M: rows, N: d.ld, K: d.d,
		LDC: d.ld, ARS: d.d, AKS: 1, BKS: d.ld, BPS: isa.Panel})
	for r, at := range k.at[:rows] {
		u := k.p[r*d.ld:][:d.n]
		switch {
		case d.pairs:
			w.Prims.Query(u, u, k.bias[int(at)*d.ld:][:d.n], k.biasContext[:d.n], k.seen[r*d.seen])
		case d.near != 0:
			w.Prims.Add(u, k.bias[int(at)*d.ld:][:d.n])
		}
	}
	if d.pairs {
		d.further(w, k, k.p, k.biasContext, rows, d.n, d.ld)
	}
	w.Prims.Pointer(k.p[:rows*d.ld], k.lp, k.th, k.ent, k.p, k.mask, rows, d.n, d.ld, d.words, d.pointerScale, mult)
}

package cpu

import (
	"math"

	"haul/internal/kernel"
)

// decodeRows is how many decode steps are computed together: a matrix product instead of as many
// vector products, still small enough to stay in cache.
const decodeRows = 64

// decoder computes a block of decode steps of one instance, forward, for the rollout and for its
// gradient.
type decoder struct {
	proj, pointer, graph       ref
	posX, posY, nodes          ref
	context, pair, pairContext ref
	n, d, heads, hd, ld, words int
	seen                       int // context features
	rules                      kernel.Rules
	scale, pointerScale, near  float32
	pairs                      bool
}

func (b *binder) decoder(o *kernel.Decoder) decoder {
	n, d := o.Pointer.Shape[1], o.Pointer.Shape[2]
	return decoder{
		proj: newRef(b.r, o.Proj), pointer: newRef(b.r, o.Pointer), graph: newRef(b.r, o.Graph), context: newRef(b.r, o.Context),
		posX: newRef(b.r, o.PosX), posY: newRef(b.r, o.PosY), nodes: newRef(b.r, o.Nodes),
		n: n, d: d, heads: o.Heads, hd: d / o.Heads, ld: kernel.Pad(n), words: words(n), seen: len(o.Set.Context()), rules: o.Rules,
		scale: float32(1 / math.Sqrt(float64(d/o.Heads))), pointerScale: float32(1 / math.Sqrt(float64(d))),
		near: o.Near, pairs: o.Pair != nil, pair: newRef(b.r, o.Pair), pairContext: newRef(b.r, o.PairContext),
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
	at                [decodeRows]int32
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
	return 2*d.d*d.ld + decodeRows*(2*d.d+(d.heads+3)*d.ld+1+d.seen) + bias
}

// biased reports whether anything is added to the pointer's dot products.
func (d *decoder) biased() bool { return d.near != 0 || d.pairs }

func (d *decoder) blockWords() int { return decodeRows * d.words }

// carve lays a block out in the worker's scratch and returns what is left of it.
func (d *decoder) carve(w *worker) (k block, rest []float32) {
	rest = w.scratch
	take := func(n int) []float32 {
		s := rest[:n:n]
		rest = rest[n:]
		return s
	}
	k.kt, k.lt = take(d.d*d.ld), take(d.d*d.ld)
	k.q, k.g = take(decodeRows*d.d), take(decodeRows*d.d)
	k.s = take(d.heads * decodeRows * d.ld)
	k.p, k.lp, k.th = take(decodeRows*d.ld), take(decodeRows*d.ld), take(decodeRows*d.ld)
	k.ent, k.seen = take(decodeRows), take(decodeRows*d.seen)
	if d.biased() {
		k.bias = take(d.n * d.ld)
	}
	if d.pairs {
		k.biasContext, k.pt = take(d.seen*d.ld), take(d.d*d.ld)
		k.pairContext, k.pairStride = d.pairContext.of(w), d.pair.stride
	}
	k.mask = w.words[:decodeRows*d.words]
	k.context, k.stride = d.context.of(w), d.proj.stride
	return k, rest
}

// open points the block at instance i and transposes its keys.
func (d *decoder) open(w *worker, k *block, i int) {
	k.proj = d.proj.of(w)[i*d.n*k.stride:]
	k.ptr = d.pointer.of(w)[i*d.n*d.d:][:d.n*d.d]
	k.graph = d.graph.of(w)[i*d.d:][:d.d]
	k.posX, k.posY = d.posX.of(w)[i*d.n:][:d.n], d.posY.of(w)[i*d.n:][:d.n]
	k.in = newInstance(ints(d.nodes.of(w)), i, d.n, d.rules)
	w.p.transpose(k.kt, d.ld, k.proj[d.d:], k.stride, d.n, d.d)
	w.p.transpose(k.lt, d.ld, k.ptr, d.d, d.n, d.d)
	d.measure(k)
	if d.pairs {
		k.pair = d.pair.of(w)[i*d.n*k.pairStride:]
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
func (d *decoder) match(w *worker, k *block) {
	w.p.transpose(k.pt, d.ld, k.pair[d.d:], k.pairStride, d.n, d.d)
	g := gemmArgs{c: ptr(k.bias), a: ptr(k.pair), b: ptr(k.pt), m: d.n, n: d.n, k: d.d,
		ldc: d.ld, ars: k.pairStride, aks: 1, bks: d.ld, bps: panel}
	if d.near != 0 {
		g.r, g.ldr = g.c, g.ldc
	}
	w.product(g)
	w.product(gemmArgs{c: ptr(k.biasContext), a: ptr(k.pairContext), b: ptr(k.pt), m: d.seen, n: d.n, k: d.d,
		ldc: d.ld, ars: d.d, aks: 1, bks: d.ld, bps: panel})
}

// query sets row r's query for a vehicle.
func (d *decoder) query(w *worker, k *block, r int, v *vehicle) {
	seen := k.seen[r*d.seen:][:d.seen]
	v.context(seen, k.in)
	k.at[r] = v.from()
	w.p.query(k.q[r*d.d:][:d.d], k.proj[int(v.from())*k.stride:][:d.d], k.graph, k.context[:d.d], seen[0])
}

// further adds to `rows` rows of y, each ld wide, the context features past the first times their
// rows of weights, of which n columns count.
func (d *decoder) further(w *worker, k *block, y, weights []float32, rows, n, ld int) {
	if d.seen == 1 {
		return
	}
	w.product(gemmArgs{c: ptr(y), a: ptr(k.seen[1:]), b: ptr(weights[ld:]), r: ptr(y), m: rows, n: n, k: d.seen - 1,
		ldc: ld, ars: d.seen, aks: 1, bks: ld, bps: panel, ldr: ld})
}

// forward computes glimpse, logits and distribution of the block's first `rows` rows.
func (d *decoder) forward(w *worker, k *block, rows int, mult float32) {
	d.further(w, k, k.q, k.context, rows, d.d, d.d)
	for h := range d.heads {
		s := k.s[h*decodeRows*d.ld:]
		w.product(gemmArgs{c: ptr(s), a: ptr(k.q[h*d.hd:]), b: ptr(k.kt[h*d.hd*d.ld:]), m: rows, n: d.ld, k: d.hd,
			ldc: d.ld, ars: d.d, aks: 1, bks: d.ld, bps: panel})
		w.p.softmaxMask(s[:rows*d.ld], k.mask, rows, d.n, d.ld, d.words, d.scale)
		w.product(gemmArgs{c: ptr(k.g[h*d.hd:]), a: ptr(s), b: ptr(k.proj[2*d.d+h*d.hd:]), m: rows, n: d.hd, k: d.n,
			ldc: d.d, ars: d.ld, aks: 1, bks: k.stride, bps: panel})
	}
	w.product(gemmArgs{c: ptr(k.p), a: ptr(k.g), b: ptr(k.lt), m: rows, n: d.ld, k: d.d,
		ldc: d.ld, ars: d.d, aks: 1, bks: d.ld, bps: panel})
	for r, at := range k.at[:rows] {
		u := k.p[r*d.ld:][:d.n]
		switch {
		case d.pairs:
			w.p.query(u, u, k.bias[int(at)*d.ld:][:d.n], k.biasContext[:d.n], k.seen[r*d.seen])
		case d.near != 0:
			w.p.add(u, k.bias[int(at)*d.ld:][:d.n])
		}
	}
	if d.pairs {
		d.further(w, k, k.p, k.biasContext, rows, d.n, d.ld)
	}
	w.p.pointer(k.p[:rows*d.ld], k.lp, k.th, k.ent, k.p, k.mask, rows, d.n, d.ld, d.words, d.pointerScale, mult)
}

package search

import "haul/internal/vrp"

import "context"

// Local search over neighbour lists. A delta must be the exact change of cost that apply makes, and
// loads are checked in the evaluation, never in apply.

type moveKind int

const (
	moveNone moveKind = iota
	// a segment of route a against a segment (perhaps none) of route b: relocate, or-opt, swap
	moveExchange
	// two segments of route a change places: relocate, or-opt, swap within a route
	moveBlocks
	moveReverse // 2-opt: the segment [a0, a1) of route a runs backwards
	moveTails   // 2-opt*: routes a and b change tails
	moveHeads   // 2-opt*, reversed: a's head meets b's head, a's tail meets b's tail
)

// move is a change to one or two routes. Segments are half-open index ranges.
type move struct {
	kind           moveKind
	a, b           int
	a0, a1, b0, b1 int
	revA, revB     bool
	delta          float64
}

// maxSegment is the longest chain of customers that or-opt moves in one piece.
const maxSegment = 3

// descent applies improving moves until none is left. For each customer in the queue it takes
// the best move that makes it a neighbour of one of its nearest customers.
type descent struct {
	*tours
	eps     float64 // a gain below this is rounding, not progress
	queue   []int32
	queued  []bool
	best    move
	scratch [2][]int32
}

func newDescent(s *tours) *descent {
	l := &descent{tours: s, queued: make([]bool, s.N)}
	for v := 1; v < s.N; v++ {
		l.eps = max(l.eps, s.D(0, int32(v)))
	}
	// long legs between customers make rounding that short ones to the depot do not show
	if s.P.Metric == vrp.Explicit {
		for _, d := range s.M {
			l.eps = max(l.eps, d)
		}
	}
	l.eps *= 1e-9
	return l
}

// run descends to a local optimum of all the moves.
func (l *descent) run(ctx context.Context) error {
	l.queue = l.queue[:0]
	for v := 1; v < l.N; v++ {
		l.push(int32(v))
	}
	for head := 0; head < len(l.queue); head++ {
		if head%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		u := l.queue[head]
		l.queued[u] = false
		l.best = move{delta: -l.eps}
		for _, v := range l.near.Of(u) {
			if l.route[u] == l.route[v] {
				l.within(u, v)
			} else {
				l.between(u, v)
			}
		}
		if l.best.kind != moveNone {
			l.apply(l.best)
			l.push(u)
		}
		// The queue is consumed from the front; drop what was read before it grows without end.
		if head > 4*l.N {
			l.queue = append(l.queue[:0], l.queue[head+1:]...)
			head = -1
		}
	}
	return nil
}

func (l *descent) push(v int32) {
	if v != 0 && !l.queued[v] {
		l.queued[v] = true
		l.queue = append(l.queue, v)
	}
}

// between tries what puts u beside v when they are on two routes.
func (l *descent) between(u, v int32) {
	a, b := int(l.route[u]), int(l.route[v])
	i, j := int(l.pos[u]), int(l.pos[v])
	na, nb := len(l.routes[a]), len(l.routes[b])
	for k := 1; k <= maxSegment; k++ {
		if i+k <= na { // u leads its segment
			l.exchange(a, i, i+k, b, j+1, j+1, false)
			l.exchange(a, i, i+k, b, j, j, true)
			for m := 1; m <= min(k, 2) && j+1+m <= nb; m++ {
				l.exchange(a, i, i+k, b, j+1, j+1+m, false)
			}
		}
		if i+1-k >= 0 { // u closes its segment
			l.exchange(a, i+1-k, i+1, b, j, j, false)
			l.exchange(a, i+1-k, i+1, b, j+1, j+1, true)
			for m := 1; m <= min(k, 2) && j-m >= 0; m++ {
				l.exchange(a, i+1-k, i+1, b, j-m, j, false)
			}
		}
	}
	l.tails(a, i, b, j+1)
	l.tails(a, i+1, b, j)
	l.heads(a, i, b, j)
	l.heads(a, i+1, b, j+1)
}

// within tries what puts u beside v when they share a route.
func (l *descent) within(u, v int32) {
	r, i, j := int(l.route[u]), int(l.pos[u]), int(l.pos[v])
	n := len(l.routes[r])
	lo, hi := min(i, j), max(i, j)
	l.reverse(r, lo+1, hi+1)
	l.reverse(r, lo, hi)
	for k := 1; k <= maxSegment; k++ {
		if i+k <= n {
			l.shift(r, i, i+k, j+1, false)
			l.shift(r, i, i+k, j, true)
		}
		if i+1-k >= 0 {
			l.shift(r, i+1-k, i+1, j, false)
			l.shift(r, i+1-k, i+1, j+1, true)
		}
	}
	for _, w := range [2]int{j - 1, j + 1} { // u takes the place of one of v's neighbours
		if w >= 0 && w < n && w != i {
			l.blocks(r, min(i, w), min(i, w)+1, max(i, w), max(i, w)+1, false, false)
		}
	}
}

// shift moves the segment [lo, hi) of route r into the gap before index g.
func (l *descent) shift(r, lo, hi, g int, rev bool) {
	switch {
	case g > hi:
		l.blocks(r, lo, hi, hi, g, rev, false)
	case g < lo:
		l.blocks(r, g, lo, lo, hi, false, rev)
	}
}

func (l *descent) offer(m move) {
	if m.delta < l.best.delta {
		l.best = m
	}
}

// exchange: a's segment goes where b's was and b's where a's was; rev turns a's around.
func (l *descent) exchange(a, a0, a1, b, b0, b1 int, rev bool) {
	ra, rb := l.routes[a], l.routes[b]
	qa := l.cum[ra[a1-1]] - l.loadTo(ra, a0)
	qb := l.loadTo(rb, b1) - l.loadTo(rb, b0)
	if c := int64(l.P.Capacity); l.load[b]+qa-qb > c || l.load[a]+qb-qa > c {
		return
	}
	before, after := l.at(ra, a0-1), l.at(ra, a1)
	left, right := l.at(rb, b0-1), l.at(rb, b1)
	first, last := ra[a0], ra[a1-1]
	delta := -l.D(before, first) - l.D(last, after)
	if rev {
		first, last = last, first
		delta += l.turn(ra, a0, a1)
	}
	delta += l.D(left, first) + l.D(last, right)
	if b0 == b1 {
		delta += l.D(before, after) - l.D(left, right)
	} else {
		f, e := rb[b0], rb[b1-1]
		delta += l.D(before, f) + l.D(e, after) - l.D(left, f) - l.D(e, right)
	}
	l.offer(move{moveExchange, a, b, a0, a1, b0, b1, rev, false, delta})
}

// blocks: the segments [a0, a1) and [b0, b1) of route r, in this order, change places.
func (l *descent) blocks(r, a0, a1, b0, b1 int, revA, revB bool) {
	rt := l.routes[r]
	before, after := l.at(rt, a0-1), l.at(rt, b1)
	fa, la, fb, lb := rt[a0], rt[a1-1], rt[b0], rt[b1-1]
	delta := -l.D(before, fa) - l.D(lb, after)
	if a1 == b0 {
		delta -= l.D(la, fb)
	} else {
		delta -= l.D(la, rt[a1]) + l.D(rt[b0-1], fb)
	}
	if revA {
		fa, la = la, fa
		delta += l.turn(rt, a0, a1)
	}
	if revB {
		fb, lb = lb, fb
		delta += l.turn(rt, b0, b1)
	}
	delta += l.D(before, fb) + l.D(la, after)
	if a1 == b0 {
		delta += l.D(lb, fa)
	} else {
		delta += l.D(lb, rt[a1]) + l.D(rt[b0-1], fa)
	}
	l.offer(move{moveBlocks, r, r, a0, a1, b0, b1, revA, revB, delta})
}

func (l *descent) reverse(r, lo, hi int) {
	if hi-lo < 2 {
		return
	}
	rt := l.routes[r]
	before, after, first, last := l.at(rt, lo-1), l.at(rt, hi), rt[lo], rt[hi-1]
	delta := l.D(before, last) + l.D(first, after) - l.D(before, first) - l.D(last, after) + l.turn(rt, lo, hi)
	l.offer(move{kind: moveReverse, a: r, b: r, a0: lo, a1: hi, b0: lo, b1: hi, delta: delta})
}

// tails: a becomes a[:i] b[j:] and b becomes b[:j] a[i:].
func (l *descent) tails(a, i, b, j int) {
	ra, rb := l.routes[a], l.routes[b]
	ha, hb := l.loadTo(ra, i), l.loadTo(rb, j)
	if c := int64(l.P.Capacity); ha+l.load[b]-hb > c || hb+l.load[a]-ha > c {
		return
	}
	u, un, v, vn := l.at(ra, i-1), l.at(ra, i), l.at(rb, j-1), l.at(rb, j)
	delta := l.D(u, vn) + l.D(v, un) - l.D(u, un) - l.D(v, vn)
	l.offer(move{kind: moveTails, a: a, b: b, a0: i, a1: i, b0: j, b1: j, delta: delta})
}

// heads: a becomes a[:i] and b[:j] backwards, b becomes a[i:] backwards and b[j:].
func (l *descent) heads(a, i, b, j int) {
	ra, rb := l.routes[a], l.routes[b]
	ha, hb := l.loadTo(ra, i), l.loadTo(rb, j)
	if c := int64(l.P.Capacity); ha+hb > c || l.load[a]-ha+l.load[b]-hb > c {
		return
	}
	u, un, v, vn := l.at(ra, i-1), l.at(ra, i), l.at(rb, j-1), l.at(rb, j)
	delta := l.D(u, v) + l.D(un, vn) - l.D(u, un) - l.D(v, vn) + l.turnHead(rb, j) + l.turnTail(ra, i)
	l.offer(move{kind: moveHeads, a: a, b: b, a0: i, a1: i, b0: j, b1: j, delta: delta})
}

// apply makes the move and queues the customers at every cut.
func (l *descent) apply(m move) {
	ra, rb := l.routes[m.a], l.routes[m.b]
	for _, c := range [2]int{m.a0, m.a1} {
		l.push(l.at(ra, c-1))
		l.push(l.at(ra, c))
	}
	for _, c := range [2]int{m.b0, m.b1} {
		l.push(l.at(rb, c-1))
		l.push(l.at(rb, c))
	}
	x, y := l.scratch[0][:0], l.scratch[1][:0]
	switch m.kind {
	case moveExchange:
		x = append(append(append(x, ra[:m.a0]...), rb[m.b0:m.b1]...), ra[m.a1:]...)
		y = append(appendRun(append(y, rb[:m.b0]...), ra[m.a0:m.a1], m.revA), rb[m.b1:]...)
	case moveBlocks:
		x = appendRun(append(x, ra[:m.a0]...), ra[m.b0:m.b1], m.revB)
		x = append(appendRun(append(x, ra[m.a1:m.b0]...), ra[m.a0:m.a1], m.revA), ra[m.b1:]...)
	case moveReverse:
		x = append(appendRun(append(x, ra[:m.a0]...), ra[m.a0:m.a1], true), ra[m.a1:]...)
	case moveTails:
		x = append(append(x, ra[:m.a0]...), rb[m.b0:]...)
		y = append(append(y, rb[:m.b0]...), ra[m.a0:]...)
	case moveHeads:
		x = appendRun(append(x, ra[:m.a0]...), rb[:m.b0], true)
		y = append(appendRun(y, ra[m.a0:], true), rb[m.b0:]...)
	}
	l.scratch[0], l.scratch[1] = x, y
	l.routes[m.a] = append(ra[:0], x...)
	l.renumber(m.a, 0)
	if m.a != m.b {
		l.routes[m.b] = append(rb[:0], y...)
		l.renumber(m.b, 0)
	}
}

// appendRun appends a segment, backwards if asked.
func appendRun(to, segment []int32, rev bool) []int32 {
	if !rev {
		return append(to, segment...)
	}
	for i := len(segment) - 1; i >= 0; i-- {
		to = append(to, segment[i])
	}
	return to
}

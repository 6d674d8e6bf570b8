package prove

import (
	"cmp"
	"math"
	"slices"
)

// The best choice among given routes, by branch and bound over a linear programme. A branch takes
// two tasks that share a route in about half of the fractional solution, and first keeps them
// together, then apart (Ryan and Foster, 1981). A branch forbids routes and never adds any, so that
// the prices stay feasible and dual continues from the parent's basis. Routes whose reduced cost at
// a branch exceeds the distance to upper are left out of that branch.

const (
	branchPairs = 6    // that a branch is tried with first
	branchProbe = 10   // pivots of each try
	branchLeast = 1e-3 // of a typical leg: what a try raises the bound by, at least
	branchWhole = 1e-3 // of 0 or 1: no fraction
)

// brancher looks for the best solution among the routes listed.
type brancher struct {
	*Prover
	upper float64
	best  []int32
}

// branch is the columns of the best solution below an upper bound, of all columns; false where it
// was stopped, or found no pair of tasks to branch on.
func (x *Prover) branch(upper float64) ([]int32, float64, bool) {
	b := &brancher{Prover: x, upper: upper}
	active, scope := slices.Clone(x.Active), make([]int32, len(x.Cost))
	for j := range scope {
		scope[j] = int32(j)
	}
	x.use(active, scope)
	all := b.descend()
	x.use(active, nil)
	return b.best, b.upper, all
}

// settle solves the linear programme of a branch.
func (b *brancher) settle() lpEnd {
	end := b.dual(b.upper, math.MaxInt, b.stop)
	if end == lpEmpty && b.bound() >= b.upper {
		// The bound holds for the active columns. Does it for all?
		b.work += len(b.row)
		if !slices.ContainsFunc(b.scope, func(j int32) bool { return !b.in[j] && !b.banned[j] && b.reduced(j) < -b.tol }) {
			return lpEmpty
		}
		end = b.dual(math.Inf(1), math.MaxInt, b.stop)
	}
	if end != lpDone {
		return end
	}
	if b.primal(b.stop); b.stop() {
		return lpStopped
	}
	if b.bound() >= b.upper {
		return lpEmpty
	}
	return lpDone
}

// descend is false where it was stopped, or found no pair of tasks to branch on.
func (b *brancher) descend() bool {
	if end := b.settle(); end != lpDone {
		return end != lpStopped
	}
	pairs, whole := b.pairs()
	if whole {
		p, twice := b.twice()
		if !twice {
			b.take()
			return true
		}
		pairs = [][2]int32{p}
	}
	if len(pairs) == 0 {
		return false
	}
	was := b.save()
	gap := b.upper - b.bound()
	in := func(list []int32) (out []int32) { // routes that solutions below upper may have
		for _, c := range list {
			if b.in[c] || !b.banned[c] && b.reduced(c) < gap {
				out = append(out, c)
			}
		}
		return out
	}
	active, open := in(b.Active), in(b.scope)
	b.work += len(b.row)
	best, most := pairs[0], -1.0
	for _, p := range pairs {
		gain := 1.0
		for side := range 2 {
			banned := b.split(active, nil, p, side)
			from, gains := b.bound(), 0.0
			if b.dual(b.upper, branchProbe, b.stop) == lpEmpty {
				gains = b.upper - from
			}
			gain *= max(gains, b.bound()-from, branchLeast*b.m.Leg)
			b.unban(banned)
			b.restore(was)
		}
		if gain > most {
			best, most = p, gain
		}
	}
	for side := range 2 {
		banned := b.split(active, open, best, side)
		ok := b.descend()
		b.unban(banned)
		b.restore(was)
		if !ok {
			return false
		}
	}
	return true
}

// take notes a solution without fractions.
func (b *brancher) take() {
	b.upper, b.best = -b.same, b.best[:0]
	for r, c := range b.base {
		if c >= 0 && b.x[r] > 0.5 {
			b.upper += b.Cost[c]
			b.best = append(b.best, c)
		}
	}
}

// twice is a task that a solution without fractions has on two routes, with one that is on a single
// one of these: neither together nor apart are both routes left.
func (b *brancher) twice() (p [2]int32, some bool) {
	on := make([]int32, b.tasks) // by task: its route, from 1
	for r, c := range b.base {
		if c < 0 || b.x[r] < 0.5 {
			continue
		}
		for _, v := range b.Routes[c].line {
			if on[v] == 0 {
				on[v] = c + 1
				continue
			}
			one, other := b.Routes[c].line, b.Routes[on[v]-1].line
			if len(one) < len(other) {
				one, other = other, one
			}
			for _, w := range one {
				if !slices.Contains(other, w) {
					return [2]int32{v, w}, true
				}
			}
		}
	}
	return p, false
}

// split leaves those routes that a side of a branch may have, and bans the others. Together: no
// route has one of the pair alone. Apart: none has both.
func (b *brancher) split(active, open []int32, p [2]int32, side int) (banned []int32) {
	in := func(list []int32) []int32 {
		out := make([]int32, 0, len(list))
		for _, c := range list {
			has := 0
			for _, v := range b.Routes[c].line {
				if v == p[0] || v == p[1] {
					has++
				}
			}
			if has != 1+side {
				out = append(out, c)
			} else if !b.banned[c] {
				banned = append(banned, c)
				b.banned[c] = true
			}
		}
		b.work += 8 * len(list)
		return out
	}
	b.use(in(active), in(open))
	return banned
}

func (b *brancher) unban(list []int32) {
	for _, c := range list {
		b.banned[c] = false
	}
}

// pairs is tasks that share routes in about half of the solution; whole where it has no fractions.
func (b *brancher) pairs() (out [][2]int32, whole bool) {
	n := b.tasks
	sum := make([]float64, n*n)
	var list []int32
	whole = true
	for r, c := range b.base {
		if c < 0 || b.x[r] < branchWhole || b.x[r] > 1-branchWhole {
			continue
		}
		whole = false
		line := b.Routes[c].line
		for k, v := range line {
			for _, w := range line[:k] {
				at := min(v, w)*int32(n) + max(v, w)
				if sum[at] == 0 {
					list = append(list, at)
				}
				sum[at] += b.x[r]
			}
		}
	}
	near := func(at int32) float64 { return math.Abs(sum[at] - 0.5) }
	slices.SortFunc(list, func(a, b int32) int { return cmp.Or(cmp.Compare(near(a), near(b)), cmp.Compare(a, b)) })
	for _, at := range list[:min(len(list), branchPairs)] {
		if near(at) < 0.5-branchWhole {
			out = append(out, [2]int32{at / int32(n), at % int32(n)})
		}
	}
	return out, whole
}

package prove

import (
	"math"

	"haul/internal/search/model"
)

// The linear programme of a set partitioning problem with cuts, by the simplex method with an
// explicit inverse. Every task is covered at least once and every cut holds; columns can be added
// and removed. Row i of inv belongs to the basic column base[i], and price holds the duals.

const (
	lpSmall  = 1e-9 // of a pivot
	lpFresh  = 50   // pivots between two looks at the inverse's error
	lpError  = 1e-9 // of a row, or of a typical leg, that is let pass
	lpBroken = 1e-7 // by which a row may be missed, and the least pivot that mends it
	lpWanted = 64   // columns that are looked at again before all are
)

// lpEnd is how dual ended.
type lpEnd int

const (
	lpDone lpEnd = iota
	lpEmpty
	lpStopped
)

// lp is min cost·x with rows of at least 1 (tasks) and at most 1 (cuts).
type lp struct {
	tasks, rows int // the rows from tasks on are cuts
	first       []int32
	row         []int32
	Cost        []float64
	base        []int32 // by row: a column, or ^i for row i's slack
	in          []bool  // by column: it is basic
	banned      []bool  // by column: a branch forbids it
	slackIn     []bool
	inv         []float64 // rows × stride
	stride      int
	right       []float64 // by row
	x           []float64
	price       []float64 // by row
	alpha       []float64
	fresh       int // pivots since the error was looked at
	work        int // numbers looked at, for budgets without a clock
	wanted      []int32
	Active      []int32 // columns that dual looks at first; primal adds those that it wants
	scope       []int32 // columns that there are; nil: all
	all         []int32
	isActive    []bool
	sets        [][]int32 // of each cut: at most one column may have two of its tasks or more
	cutsOf      [][]int32 // by task: the cuts that it is in
	times       []int8
	tol         float64
}

// newLP begins with a column of its own for every task, at these costs.
func newLP(alone []float64, tol float64) *lp {
	n := len(alone)
	p := &lp{tasks: n, rows: n, first: []int32{0}, cutsOf: make([][]int32, n), tol: tol}
	p.room(n)
	for i, c := range alone {
		p.add(c, []int32{int32(i)}, true)
		p.base = append(p.base, int32(i))
		p.in[i] = true
		// Rows that differ a little keep the method from standing still. They ask for less, so that
		// no solution is lost.
		p.right = append(p.right, 1-1e-5*float64(model.Mix(int32(i+1))>>40)/(1<<24))
		p.price[i] = c
		p.inv[i*p.stride+i] = 1
		p.x[i] = p.right[i]
	}
	p.slackIn = make([]bool, n)
	return p
}

// reduced is a column's cost less its prices.
func (p *lp) reduced(j int32) float64 {
	r := p.Cost[j]
	for _, i := range p.row[p.first[j]:p.first[j+1]] {
		r -= p.price[i]
	}
	return r
}

// sign is what a slack has in its row.
func (p *lp) sign(i int32) float64 {
	if int(i) < p.tasks {
		return -1
	}
	return 1
}

// enter sets alpha to the basis' view of a column or slack.
func (p *lp) enter(j int32) {
	m := p.rows
	if j < 0 {
		s := p.sign(^j)
		for r := range m {
			p.alpha[r] = s * p.inv[r*p.stride+int(^j)]
		}
		return
	}
	row := p.row[p.first[j]:p.first[j+1]]
	for r := range m {
		line := p.inv[r*p.stride : r*p.stride+m]
		sum := 0.0
		for _, i := range row {
			sum += line[i]
		}
		p.alpha[r] = sum
	}
}

// pivot makes column j, whose reduced cost is d, basic in row r; alpha is its view.
func (p *lp) pivot(r int, j int32, d float64) {
	m := p.rows
	line := p.inv[r*p.stride : r*p.stride+m]
	by := 1 / p.alpha[r]
	for i := range line {
		line[i] *= by
	}
	p.x[r] *= by
	for i := range m {
		a := p.alpha[i]
		if i == r || a == 0 {
			continue
		}
		other := p.inv[i*p.stride:][:len(line)]
		for k, y := range line {
			other[k] -= float64(a * y)
		}
		p.x[i] -= float64(a * p.x[r])
	}
	for i, y := range line {
		p.price[i] += float64(d * y)
	}
	p.mark(p.base[r], false)
	p.mark(j, true)
	p.base[r] = j
	p.work += m * m
	if p.fresh++; p.fresh >= lpFresh {
		p.fresh = 0
		if p.error() > lpError {
			p.invert()
		}
	}
}

func (p *lp) mark(j int32, in bool) {
	if j < 0 {
		p.slackIn[^j] = in
	} else {
		p.in[j] = in
	}
}

// error is by how much the basic columns miss the rows, and their prices their costs.
func (p *lp) error() (worst float64) {
	sum := append([]float64(nil), p.right...)
	for r, j := range p.base {
		if j < 0 {
			sum[^j] -= p.sign(^j) * p.x[r]
			continue
		}
		for e := p.first[j]; e < p.first[j+1]; e++ {
			sum[p.row[e]] -= p.x[r]
		}
		worst = max(worst, math.Abs(p.reduced(j))/(p.tol*1e7))
	}
	for _, y := range sum {
		worst = max(worst, math.Abs(y))
	}
	return worst
}

// invert makes the inverse, x and the prices anew from the basis.
func (p *lp) invert() {
	m := p.rows
	p.fresh = 0
	a := make([]float64, m*m) // the basis, by row
	inv := make([]float64, m*m)
	for c, j := range p.base {
		inv[c*m+c] = 1
		if j < 0 {
			a[int(^j)*m+c] = p.sign(^j)
			continue
		}
		for e := p.first[j]; e < p.first[j+1]; e++ {
			a[int(p.row[e])*m+c] = 1
		}
	}
	// Gauss and Jordan, with the largest pivot of each column.
	for c := range m {
		best := c
		for i := c + 1; i < m; i++ {
			if math.Abs(a[i*m+c]) > math.Abs(a[best*m+c]) {
				best = i
			}
		}
		if best != c {
			for k := range m {
				a[c*m+k], a[best*m+k] = a[best*m+k], a[c*m+k]
				inv[c*m+k], inv[best*m+k] = inv[best*m+k], inv[c*m+k]
			}
		}
		by := 1 / a[c*m+c]
		from, fromInv := a[c*m:c*m+m], inv[c*m:c*m+m]
		for k := range m {
			from[k] *= by
			fromInv[k] *= by
		}
		for i := range m {
			f := a[i*m+c]
			if i == c || f == 0 {
				continue
			}
			to, toInv := a[i*m:i*m+m], inv[i*m:i*m+m]
			for k := c; k < m; k++ {
				to[k] -= float64(f * from[k])
			}
			for k, y := range fromInv {
				toInv[k] -= float64(f * y)
			}
		}
	}
	for i := range m {
		copy(p.inv[i*p.stride:], inv[i*m:i*m+m])
	}
	p.solve()
}

// solve sets x and the prices from the inverse.
func (p *lp) solve() {
	m := p.rows
	clear(p.price[:m])
	for i := range m {
		line := p.inv[i*p.stride : i*p.stride+m]
		x := 0.0
		for k, y := range line {
			x += float64(y * p.right[k])
		}
		p.x[i] = x
		if j := p.base[i]; j >= 0 && p.Cost[j] != 0 {
			for k, y := range line {
				p.price[k] += float64(p.Cost[j] * y)
			}
		}
	}
}

// primal goes down to the least cost, for a basis that keeps all rows.
func (p *lp) primal(stop func() bool) {
	for turn := 0; ; turn++ {
		if turn%32 == 0 && stop() {
			return
		}
		j, d, some := p.want()
		if !some {
			return
		}
		p.enter(j)
		r, least := -1, math.Inf(1)
		for i := range p.rows {
			if j := p.base[i]; j >= 0 && p.banned[j] && math.Abs(p.alpha[i]) > lpBroken {
				r, least = i, -1 // it is 0 and stays so
				break
			}
			if a := p.alpha[i]; a > lpSmall {
				if q := max(0, p.x[i]) / a; q < least-1e-12 || q < least+1e-12 && r >= 0 && a > p.alpha[r] {
					r, least = i, q
				}
			}
		}
		if r < 0 {
			return
		}
		p.pivot(r, j, d)
	}
}

// want is the column of the least reduced cost among those that were wanted before, or of all.
func (p *lp) want() (best int32, d float64, some bool) {
	d = -p.tol
	kept := p.wanted[:0]
	for _, j := range p.wanted {
		if p.in[j] || p.banned[j] {
			continue
		}
		if r := p.reduced(j); r < -p.tol {
			kept = append(kept, j)
			if r < d {
				best, d, some = j, r, true
			}
		}
	}
	p.wanted = kept
	for i := range p.rows {
		if p.slackIn[i] {
			continue
		}
		if r := -p.sign(int32(i)) * p.price[i]; r < d {
			best, d, some = ^int32(i), r, true
		}
	}
	if some {
		return best, d, true
	}
	worst := -p.tol
	p.work += len(p.row)
	look := func(j int32) {
		if p.in[j] || p.banned[j] {
			return
		}
		if r := p.reduced(j); r < worst {
			if r < d {
				best, d, some = j, r, true
			}
			p.wanted = append(p.wanted, j)
			if !p.isActive[j] {
				p.isActive[j] = true
				p.Active = append(p.Active, j)
			}
			if len(p.wanted) >= 2*lpWanted {
				// the later half, which is no worse than the limit was when it came
				p.wanted = p.wanted[:copy(p.wanted, p.wanted[lpWanted:])]
				worst = d / 4
			}
		}
	}
	for _, j := range p.there() {
		look(j)
	}
	return best, d, some
}

// dual restores rows that are broken and drives out columns that are banned, for prices that no
// other active column is worth more than. Empty: no solution is left, or none of the active columns
// that costs less than a limit.
func (p *lp) dual(limit float64, turns int, stop func() bool) lpEnd {
	m := p.rows
	for turn := 0; ; turn++ {
		if turn%4 == 0 && p.bound() >= limit {
			return lpEmpty
		}
		if turn == turns || turn%16 == 0 && stop() {
			return lpStopped
		}
		r, worst, way := -1, lpBroken, 0.0
		for i := range m {
			if x := p.x[i]; -x > worst {
				r, worst, way = i, -x, 1
			} else if x > worst && p.base[i] >= 0 && p.banned[p.base[i]] {
				r, worst, way = i, x, -1
			}
		}
		if r < 0 {
			return lpDone
		}
		line := p.inv[r*p.stride : r*p.stride+m]
		best, least, size, found := int32(0), math.Inf(1), 0.0, false
		for i := range int32(m) {
			if p.slackIn[i] {
				continue
			}
			s := p.sign(i)
			if a := -way * s * line[i]; a > lpBroken {
				if q := max(0, -s*p.price[i]) / a; q < least-1e-10 || q < least+1e-10 && a > size {
					best, least, size, found = ^i, q, a, true
				}
			}
		}
		look := func(list []int32) {
			p.work += 8 * len(list)
			for _, j := range list {
				a := 0.0
				for _, i := range p.row[p.first[j]:p.first[j+1]] {
					a -= line[i]
				}
				if a *= way; a <= lpBroken || p.in[j] || p.banned[j] {
					continue
				}
				if q := max(0, p.reduced(j)) / a; q < least-1e-10 || q < least+1e-10 && a > size {
					best, least, size, found = j, q, a, true
				}
			}
		}
		if look(p.Active); !found {
			if look(p.there()); found && best >= 0 {
				p.Active = append(p.Active, best)
				p.isActive[best] = true
			}
		}
		if !found {
			return lpEmpty
		}
		var d float64
		if best < 0 {
			d = -p.sign(^best) * p.price[^best]
		} else {
			d = p.reduced(best)
		}
		p.enter(best)
		p.pivot(r, best, d)
	}
}

// bound is what every solution costs at least, if no column is worth more than its prices.
func (p *lp) bound() (sum float64) {
	for _, y := range p.price[:p.rows] {
		sum += y
	}
	return sum
}

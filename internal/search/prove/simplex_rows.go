package prove

import "slices"

// Changing the columns and rows of a linear programme together with its basis. The rows of a column
// are its tasks and the cuts that contain two of them. rebuild computes them again after every
// change of the cuts, and the inverse is updated, not computed again.

// room makes space for so many rows.
func (p *lp) room(rows int) {
	if rows <= p.stride {
		return
	}
	stride := rows + 32
	inv := make([]float64, stride*stride)
	for i := range p.rows {
		if p.inv != nil {
			copy(inv[i*stride:], p.inv[i*p.stride:i*p.stride+p.rows])
		}
	}
	p.inv, p.stride = inv, stride
	grow := func(list []float64) []float64 {
		to := make([]float64, stride)
		copy(to, list)
		return to
	}
	p.x, p.price, p.alpha = grow(p.x), grow(p.price), grow(p.alpha)
}

// add appends a column that covers some tasks. Unless it is active, primal must want it first.
func (p *lp) add(cost float64, tasks []int32, active bool) {
	j := int32(len(p.Cost))
	p.row = p.entries(p.row, tasks)
	p.first = append(p.first, int32(len(p.row)))
	p.Cost = append(p.Cost, cost)
	p.in, p.banned = append(p.in, false), append(p.banned, false)
	p.isActive = append(p.isActive, active)
	if active {
		p.Active = append(p.Active, j)
	}
}

// entries appends a column's rows: its tasks, and the cuts that have two of them.
func (p *lp) entries(row, tasks []int32) []int32 {
	for _, v := range tasks {
		row = append(row, v)
		for _, k := range p.cutsOf[v] {
			if p.times[k]++; p.times[k] == 2 {
				row = append(row, int32(p.tasks)+k)
			}
		}
	}
	for _, v := range tasks {
		for _, k := range p.cutsOf[v] {
			p.times[k] = 0
		}
	}
	return row
}

// members is the tasks of a column.
func (p *lp) members(j int32, to []int32) []int32 {
	to = to[:0]
	for _, i := range p.row[p.first[j]:p.first[j+1]] {
		if int(i) < p.tasks {
			to = append(to, i)
		}
	}
	return to
}

// cut adds a row for each set of tasks: at most one column may have two of them or more.
func (p *lp) cut(sets [][]int32) {
	p.room(p.rows + len(sets))
	for _, s := range sets {
		for _, v := range s {
			p.cutsOf[v] = append(p.cutsOf[v], int32(len(p.sets)))
		}
		p.sets, p.times = append(p.sets, s), append(p.times, 0)
		p.base, p.slackIn = append(p.base, ^int32(p.rows)), append(p.slackIn, true)
		p.right = append(p.right, 1)
		p.rows++
	}
	from := p.rows - len(sets)
	p.rebuild(func(int32) bool { return true }, nil)
	// The inverse of a basis with further rows, whose slacks are basic: less what the rows ask of
	// the basic columns.
	for r := range p.rows {
		clear(p.inv[r*p.stride+from : r*p.stride+p.rows])
	}
	for r := from; r < p.rows; r++ {
		line := p.inv[r*p.stride : r*p.stride+p.rows]
		clear(line)
		line[r] = 1
	}
	for c, j := range p.base[:from] {
		if j < 0 {
			continue
		}
		for e := p.first[j]; e < p.first[j+1]; e++ {
			if int(p.row[e]) < from {
				continue
			}
			line := p.inv[int(p.row[e])*p.stride:][:from]
			for k, y := range p.inv[c*p.stride:][:from] {
				line[k] -= y
			}
		}
	}
	p.solve()
}

// purge drops the cuts that do not bind: those with a basic slack.
func (p *lp) purge() {
	// where a row goes to; positions of the basis that stay
	row, place := make([]int32, p.rows), make([]int32, 0, p.rows)
	n := int32(0)
	sets := p.sets[:0]
	for i := range p.rows {
		row[i] = -1
		if i >= p.tasks && p.slackIn[i] {
			continue
		}
		row[i] = n
		if i >= p.tasks {
			sets = append(sets, p.sets[i-p.tasks])
		}
		p.right[n], p.slackIn[n], p.price[n] = p.right[i], p.slackIn[i], p.price[i]
		n++
	}
	if int(n) == p.rows {
		return
	}
	for r, j := range p.base {
		if j >= 0 || row[^j] >= 0 {
			place = append(place, int32(r))
		}
	}
	for to, r := range place {
		line := p.inv[to*p.stride:]
		for i, y := range p.inv[int(r)*p.stride:][:p.rows] {
			if row[i] >= 0 {
				line[row[i]] = y
			}
		}
		p.x[to] = p.x[r]
		j := p.base[r]
		if j < 0 {
			j = ^row[^j]
		}
		p.base[to] = j
	}
	p.rows = int(n)
	p.base, p.right, p.slackIn, p.sets, p.times = p.base[:n], p.right[:n], p.slackIn[:n], sets, p.times[:len(sets)]
	for v := range p.cutsOf {
		p.cutsOf[v] = p.cutsOf[v][:0]
	}
	for k, s := range p.sets {
		for _, v := range s {
			p.cutsOf[v] = append(p.cutsOf[v], int32(k))
		}
	}
}

// rebuild keeps some columns and all basic ones, with the rows of all cuts. moved gets the number
// of each column before, of those kept in turn.
func (p *lp) rebuild(keep func(j int32) bool, moved func(from int32)) {
	to := make([]int32, len(p.Cost))
	first, row := []int32{0}, make([]int32, 0, len(p.row))
	n := int32(0)
	active := p.Active[:0]
	var line []int32
	for j := range int32(len(p.Cost)) {
		if !p.in[j] && !keep(j) {
			continue
		}
		to[j] = n
		line = p.members(j, line)
		row = p.entries(row, line)
		first = append(first, int32(len(row)))
		p.Cost[n], p.in[n], p.banned[n], p.isActive[n] = p.Cost[j], p.in[j], p.banned[j], p.isActive[j]
		if moved != nil {
			moved(j)
		}
		n++
	}
	p.first, p.row = first, row
	p.Cost, p.in, p.banned, p.isActive = p.Cost[:n], p.in[:n], p.banned[:n], p.isActive[:n]
	for j, is := range p.isActive {
		if is {
			active = append(active, int32(j))
		}
	}
	p.Active, p.wanted = active, p.wanted[:0]
	for i, j := range p.base {
		if j >= 0 {
			p.base[i] = to[j]
		}
	}
}

// basis is a copy of a basis with all that belongs to it.
type basis struct {
	base          []int32
	inv, x, price []float64
}

func (p *lp) save() *basis {
	return &basis{slices.Clone(p.base), slices.Clone(p.inv[:p.rows*p.stride]), slices.Clone(p.x), slices.Clone(p.price)}
}

func (p *lp) restore(b *basis) {
	for _, j := range p.base {
		p.mark(j, false)
	}
	copy(p.base, b.base)
	copy(p.inv, b.inv)
	copy(p.x, b.x)
	copy(p.price, b.price)
	for _, j := range p.base {
		p.mark(j, true)
	}
}

// use has dual look at some columns, of some that there are.
func (p *lp) use(active, scope []int32) {
	clear(p.isActive)
	p.Active, p.scope, p.wanted = active, scope, p.wanted[:0]
	for _, j := range active {
		p.isActive[j] = true
	}
}

// there is the columns that there are.
func (p *lp) there() []int32 {
	if p.scope != nil {
		return p.scope
	}
	for len(p.all) < len(p.Cost) {
		p.all = append(p.all, int32(len(p.all)))
	}
	return p.all[:len(p.Cost)]
}

package search

import (
	"context"
	"math"
	"slices"

	"haul/internal/vrp"
)

// Building the search's model of a problem. What a reader could break: every field of
// vrp.Problem is read here; the constraint of a field that is overlooked would not be kept.

// compile makes the model. The problem has been checked. Where ctx ends, or its deadline is too
// soon, lists of neighbours are shorter or empty.
func compile(ctx context.Context, p *vrp.Problem) *model {
	m := &model{p: p, nodes: len(p.Demand), depots: p.DepotCount(), dims: 1 + len(p.Dimensions),
		ordered: p.Backhauls, lifo: p.LIFO, pairs: p.Shipments != nil}
	m.units()
	m.readPlaces()
	m.readTasks()
	m.readKinds()
	m.flags()
	m.readSegments()
	m.readNear(ctx)
	m.scale()
	return m
}

// sampled calls f for all pairs of places, or for some where there are many. Where the way back is
// as long, each is named once and stands for two.
func (m *model) sampled(f func(i, j, times int)) {
	n := m.nodes
	switch {
	case n > richTable:
		for i := range n {
			for k := range 32 {
				if j := (i*7 + k*k + 1) % n; j != i {
					f(i, j, 1)
				}
			}
		}
	case m.bothWays():
		for i := range n {
			for j := range i {
				f(i, j, 2)
			}
		}
	default:
		for i := range n {
			for j := range n {
				if i != j {
					f(i, j, 1)
				}
			}
		}
	}
}

// bothWays is whether coordinates tell all ways, so that the way back is as long.
func (m *model) bothWays() bool { return m.p.Profiles == nil && m.p.Metric != vrp.Explicit }

// units chooses what a unit of distance and of time is.
func (m *model) units() {
	p := m.p
	profiles := max(1, len(p.Profiles))
	ways := &numbers{}
	for k := range profiles {
		m.sampled(func(i, j, times int) { ways.add(min(p.DistanceOf(k, i, j), 1e12), times) })
	}
	m.distUnit, _ = unitOf(ways, func(func(float64)) {}, func(yield func(float64)) {
		for _, t := range p.Types() {
			yield(t.MaxDistance)
		}
	})
	if p.Profiles != nil || p.Speed != 0 && p.Speed != 1 {
		ways = &numbers{}
		for k := range profiles {
			m.sampled(func(i, j, times int) { ways.add(min(p.DurationOf(k, i, j), 1e12), times) })
		}
	}
	m.timeUnit, m.wholeTimes = m.timeUnits(ways)
}

// timeUnits chooses what a unit of time is; lengths has the durations of all ways. Lengths of time
// stand in tables of 32 bits, and points in time do not: where these count from far away, as
// seconds since 1970 do, or where an end is a number that stands for none (9999999999), durations
// keep their digits. An end that no route can reach is no end.
func (m *model) timeUnits(lengths *numbers) (unit float64, whole bool) {
	p, types := m.p, m.p.Types()
	for _, list := range [][]float64{p.Service, p.Setup} {
		for _, x := range list {
			lengths.add(x, 1)
		}
	}
	for _, t := range types {
		for _, b := range t.Breaks {
			lengths.add(b.Duration, 1)
		}
	}
	all := lengths.most * float64(4*m.nodes+4) // what all of them take together at most
	starts, last := []float64{}, 0.0
	starts = append(starts, p.Release...)
	for _, ws := range p.Windows {
		for _, w := range ws {
			starts = append(starts, w.From)
		}
	}
	for _, t := range types {
		starts = append(starts, t.Shift.From)
		for _, b := range t.Breaks {
			for _, w := range b.Windows {
				starts = append(starts, w.From)
			}
		}
	}
	for _, x := range starts {
		last = max(last, x)
	}
	horizon := 2 * (last + all)
	points := func(yield func(float64)) {
		for _, x := range starts {
			yield(x)
		}
		end := func(x float64) {
			if x <= horizon {
				yield(x)
			}
		}
		for _, ws := range p.Windows {
			for _, w := range ws {
				end(w.To)
			}
		}
		for _, t := range types {
			end(t.Shift.To)
			end(t.LatestStart)
			end(t.MaxDuration)
		}
	}
	return unitOf(lengths, points, points)
}

func value(list []float64, i int) float64 {
	if list == nil {
		return 0
	}
	return list[i]
}

// amount is 0 in dimensions that a list does not reach.
func amount(list []int32, i int) int32 {
	if i >= len(list) {
		return 0
	}
	return list[i]
}

func (m *model) readPlaces() {
	p := m.p
	m.places = make([]place, m.nodes+1)
	m.amounts = make([]lseg, (m.nodes+1)*m.dims)
	m.side = make([]uint8, m.nodes+1)
	for v := range m.places {
		at := &m.places[v]
		at.late, at.lead = endless, int32(v)
		if v == m.nodes {
			continue // nowhere
		}
		at.service = upUnits(value(p.Service, v), m.timeUnit)
		if p.Windows != nil && len(p.Windows[v]) > 0 {
			ws := p.Windows[v]
			at.early, at.late = upUnits(ws[0].From, m.timeUnit), downUnits(ws[len(ws)-1].To, m.timeUnit)
			m.timed = true
			m.slow = m.slow || len(ws) > 1
		}
		if v < m.depots {
			continue
		}
		at.required = p.Optional == nil || !p.Optional[v]
		at.release = upUnits(value(p.Release, v), m.timeUnit)
		at.price = value(p.Prize, v)
		for k := range m.dims {
			d, q := p.Demand, p.Pickup
			if k > 0 {
				d, q = p.Dimensions[k-1].Delivery, p.Dimensions[k-1].Pickup
			}
			m.amounts[v*m.dims+k] = single(amount(d, v), amount(q, v))
		}
		at.delivery, at.pick = m.amounts[v*m.dims].del, m.amounts[v*m.dims].pick
		if at.pick > 0 {
			m.side[v] |= 1
		}
		if at.delivery > 0 {
			m.side[v] |= 2
		}
	}
}

// readTasks joins shipments and groups.
func (m *model) readTasks() {
	p := m.p
	m.members, m.shipment = make([][]int32, m.nodes), make([][]int32, m.nodes)
	m.loss = make([]float64, m.nodes)
	for _, s := range p.Shipments {
		a, b := &m.places[s.Pickup], &m.places[s.Delivery]
		a.mate, b.mate, b.lead, b.second = s.Delivery, s.Pickup, s.Pickup, true
		m.shipment[s.Pickup], m.shipment[s.Delivery] = s.Amount, s.Amount
		a.price += b.price
		a.required = a.required || b.required
		for k := range m.dims {
			q := amount(s.Amount, k)
			// on board from the one to the other, beside what the place gets or gives itself
			from, to := &m.amountsOf(s.Pickup)[k], &m.amountsOf(s.Delivery)[k]
			*from = from.join(lseg{pick: q, peak: q})
			*to = lseg{pick: -q}.join(*to)
		}
		m.mixed = true
	}
	for _, g := range p.Groups {
		if len(g.Members) == 0 {
			continue
		}
		lead := g.Members[0]
		m.members[lead] = g.Members
		all := 0.0
		for _, v := range g.Members {
			all += m.places[v].price
		}
		for _, v := range g.Members {
			m.places[v].lead, m.places[v].required = lead, g.Required
			m.loss[v] = all - m.places[v].price
		}
		m.places[lead].price = all
	}
	m.row = make([]int32, m.nodes)
	for v := m.depots; v < m.nodes; v++ {
		if m.places[v].lead == int32(v) {
			m.tasks = append(m.tasks, int32(v))
			m.row[v] = int32(len(m.tasks))
		}
	}
}

func (m *model) readKinds() {
	p := m.p
	types := p.Types()
	n := m.nodes
	dist, dur := map[int]*grid{}, map[int]*grid{}
	void := false
	for _, t := range types {
		void = void || t.Start == vrp.None || t.End == vrp.None
	}
	for i := range types {
		t := &types[i]
		k := kind{start: int32(t.Start), end: int32(t.End), count: t.Count, cap: t.Capacity, initial: t.InitialLoad,
			early: upUnits(t.Shift.From, m.timeUnit), late: downUnits(t.Shift.To, m.timeUnit),
			lastStart: downUnits(t.LatestStart, m.timeUnit), maxDur: downUnits(t.MaxDuration, m.timeUnit),
			maxDist: downUnits(t.MaxDistance, m.distUnit), maxStops: t.MaxStops,
			fixed: t.FixedCost, perDist: t.DistanceCost / m.distUnit, perDur: t.DurationCost / m.timeUnit,
			breaks: t.Breaks, maxReloads: t.MaxReloads}
		if t.Start == vrp.None {
			k.start = int32(n)
		}
		if t.End == vrp.None {
			k.end = int32(n)
		}
		if k.count == 0 {
			k.count = n
		}
		if k.maxStops == 0 {
			k.maxStops = n
		}
		k.count = min(k.count, n)
		for _, d := range t.Reloads {
			k.reloads = append(k.reloads, int32(d))
		}
		if k.maxReloads == 0 && len(k.reloads) > 0 {
			k.maxReloads = n
		}
		// A dimension that a list does not reach has no limit, and no initial load.
		for k.cap = slices.Clip(k.cap); len(k.cap) < m.dims; {
			k.cap = append(k.cap, math.MaxInt32)
		}
		for k.initial = slices.Clip(k.initial); k.initial != nil && len(k.initial) < m.dims; {
			k.initial = append(k.initial, 0)
		}
		m.slow = m.slow || len(t.Breaks) > 0
		m.trips = m.trips || len(k.reloads) > 0
		m.perDur = m.perDur || t.DurationCost > 0
		if dist[t.Profile] == nil {
			dist[t.Profile] = m.newGrid(void, m.ruled(m.distUnit, false, func(i, j int) int32 {
				return int32(min(math.Round(p.DistanceOf(t.Profile, i, j)*m.distUnit), longestLength))
			}))
			dur[t.Profile] = dist[t.Profile]
			if p.Speed != 0 && p.Speed != 1 || p.Profiles != nil && p.Profiles[t.Profile].Duration != nil || m.distUnit != m.timeUnit || !m.wholeTimes {
				dur[t.Profile] = m.newGrid(void, m.ruled(m.timeUnit, true, func(i, j int) int32 {
					return int32(min(upUnits(p.DurationOf(t.Profile, i, j), m.timeUnit), longestLength))
				}))
			}
		}
		k.dist, k.dur = dist[t.Profile], dur[t.Profile]
		k.allowed = m.bits(t)
		m.kinds = append(m.kinds, k)
	}
	for i := range m.kinds {
		m.kinds[i].family = i
		for j := range i {
			if m.sameFamily(&types[i], &types[j]) {
				m.kinds[i].family = m.kinds[j].family
				break
			}
		}
	}
}

func (m *model) newGrid(void bool, f func(i, j int) int32) *grid {
	n := m.nodes
	g := &grid{n: n, f: func(i, j int32) int32 {
		if i == j || int(i) >= n || int(j) >= n {
			return 0
		}
		return f(int(i), int(j))
	}}
	if n <= richTable {
		if void {
			g.n = n + 1
		}
		g.cell = make([]int32, g.n*g.n)
		if m.bothWays() {
			for i := range n {
				for j := range i {
					d := f(i, j)
					g.cell[i*g.n+j], g.cell[j*g.n+i] = d, d
				}
			}
			return g
		}
		for i := range n {
			for j := range n {
				g.cell[i*g.n+j] = g.f(int32(i), int32(j))
			}
		}
		g.transpose()
	}
	return g
}

// transpose makes the distances the other way round, where they differ.
func (g *grid) transpose() {
	for i := range g.n {
		for j := range i {
			if g.cell[i*g.n+j] != g.cell[j*g.n+i] {
				g.back = make([]int32, len(g.cell))
				for i := range g.n {
					for j := range g.n {
						g.back[j*g.n+i] = g.cell[i*g.n+j]
					}
				}
				return
			}
		}
	}
}

// bits is the set of customers that a type may serve; nil: all.
func (m *model) bits(t *vrp.VehicleType) []uint64 {
	if t.Allowed == nil && m.p.Needs == nil {
		return nil
	}
	set := make([]uint64, (m.nodes+64)/64)
	for v := m.depots; v < m.nodes; v++ {
		ok := true
		if m.p.Needs != nil {
			for _, s := range m.p.Needs[v] {
				ok = ok && slices.Contains(t.Skills, s)
			}
		}
		if ok && t.Allowed == nil {
			set[v>>6] |= 1 << (v & 63)
		} else if ok {
			set[v>>6] |= 1 << (v & 63)
		}
	}
	if t.Allowed != nil {
		only := make([]uint64, len(set))
		for _, v := range t.Allowed {
			only[v>>6] |= 1 << (v & 63)
		}
		for i := range set {
			set[i] &= only[i]
		}
	}
	return set
}

func (m *model) sameFamily(a, b *vrp.VehicleType) bool {
	return a.Start == b.Start && a.End == b.End && a.Shift == b.Shift && a.LatestStart == b.LatestStart && a.Profile == b.Profile &&
		slices.Equal(a.Reloads, b.Reloads) && a.MaxReloads == b.MaxReloads && slices.EqualFunc(a.Breaks, b.Breaks, sameBreak)
}

func sameBreak(a, b vrp.Break) bool {
	return slices.Equal(a.Windows, b.Windows) && a.Duration == b.Duration && slices.Equal(a.MaxLoad, b.MaxLoad)
}

// flags says which checks routes need.
func (m *model) flags() {
	p := m.p
	del, pick := false, false
	for v := m.depots; v < m.nodes; v++ {
		for _, a := range m.amountsOf(int32(v)) {
			del, pick = del || a.del != 0, pick || a.pick != 0
		}
		m.timed = m.timed || m.places[v].release > 0
	}
	m.sorted = pick && m.ordered != vrp.Mixed
	// Where all deliveries come first, the most on board is what is delivered or what is picked up.
	m.mixed = m.mixed || del && pick && (!m.sorted || m.dims > 1)
	for i := range m.kinds {
		k := &m.kinds[i]
		m.timed = m.timed || k.early > 0 || k.late < endless || k.lastStart < endless || k.maxDur < endless || k.perDur > 0
	}
	m.timed = m.timed || p.Objective == vrp.ShortestRoute
	for _, x := range p.Late {
		m.slow = m.slow || x > 0
	}
	for _, x := range p.Setup {
		m.slow = m.slow || x > 0
	}
	m.slow = m.slow || m.lifo || m.pairs && m.trips
	for _, k := range m.kinds {
		m.slow = m.slow || int(k.start) == m.nodes && min(k.lastStart, k.late) < endless
	}
	if m.slow && m.clocks() {
		m.slow, m.timed, m.clocked = false, true, true
		m.readClocks()
	}
	m.prompt = m.timed && !m.slow && !m.clocked && !m.trips && !m.pairs && m.windowed()
	for i := range m.kinds {
		m.oneGrid = m.kinds[i].dist == m.kinds[0].dist && (i == 0 || m.oneGrid)
	}
}

// readSegments makes the segments of the depots, as each kind sees them.
func (m *model) readSegments() {
	for i := range m.kinds {
		k := &m.kinds[i]
		s, e := &m.places[k.start], &m.places[k.end]
		k.startSeg = tseg{dur: s.service, early: max(k.early, s.early), late: min(k.late, k.lastStart, s.late)}
		k.endSeg = tseg{early: e.early, late: min(k.late, e.late)}
		if k.startSeg.early > k.startSeg.late || k.endSeg.early > k.endSeg.late {
			k.count = 0 // its shift ends before its depot opens
		}
		for _, d := range k.reloads {
			at := &m.places[d]
			k.reloadSegs = append(k.reloadSegs, tseg{dur: at.service, early: at.early, late: at.late})
		}
	}
}

// stands is how many customers stand for each other, where groups are the rule; 4 at most.
func (m *model) stands() int {
	if m.pairs {
		return 1
	}
	return max(1, min(4, (m.nodes-m.depots)/max(1, len(m.tasks))))
}

// scale sets the unit of temperature, and the price of leaving out a required customer.
func (m *model) scale() {
	k := &m.kinds[0]
	var sum float64
	count := 0
	for v := int32(m.depots); int(v) < m.nodes; v++ {
		if list := m.nearOf(v); len(list) > 0 {
			sum += float64(k.dist.at(v, list[0])+k.dist.at(v, list[len(list)/8])) / 2 * max(k.perDist, k.perDur*m.timeUnit/m.distUnit)
			count++
		}
	}
	m.leg = max(1e-9, sum/float64(max(count, 1)))
	for i := range m.kinds {
		k := &m.kinds[i]
		for _, v := range m.tasks {
			far := float64(k.dist.at(k.start, v))*k.perDist + float64(k.dist.at(v, k.end))*k.perDist
			if m.timed {
				far += float64(int64(k.dur.at(k.start, v)+k.dur.at(v, k.end))+m.places[v].service) * k.perDur
			}
			m.upper = max(m.upper, k.fixed+far)
		}
	}
	if m.p.Windows != nil {
		m.spans = make([][]span, m.nodes)
		for v := range m.spans {
			m.spans[v], _ = m.spansOf(m.p.Windows[v], 0, endless)
		}
	}
	m.softly = !m.slow && !m.pairs && len(m.tasks) >= tollLeast && m.oneSize()
	m.weigh()
	m.leastPerDist = math.Inf(1)
	for i := range m.kinds {
		m.leastPerDist = min(m.leastPerDist, m.kinds[i].perDist)
	}
	if m.p.Objective == vrp.FewestVehicles {
		// Each vehicle costs more than any detour that saves it.
		extra := m.upper*float64(len(m.tasks)) + 1
		for i := range m.kinds {
			m.kinds[i].own = m.kinds[i].fixed
			m.kinds[i].fixed += extra
		}
		m.upper += extra
	}
	m.upper = 4*m.upper + 100*m.leg
	for v := m.depots; v < m.nodes; v++ {
		at := &m.places[v]
		if at.required {
			at.price = m.upper + at.price
			if m.p.Priority != nil {
				at.price *= 1 + float64(max(0, m.p.Priority[v]))
			}
		}
	}
}

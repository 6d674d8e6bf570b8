package model

import (
	"slices"

	"haul/internal/vrp"
)

// demands collects what a problem asks for while it is compiled.
type demands struct {
	timed bool // windows, durations or releases matter
	walks bool // routes must be walked, or clocked
	order bool // the order of deliveries and pickups matters to the load
}

// readTraits sets the traits of a problem whose locations, tasks and types have been read.
func (m *Compiled) readTraits(d demands) {
	t := &m.Traits
	m.readOrder(&d)
	m.readTime(d)
	switch {
	case slices.ContainsFunc(m.Types, func(k VehicleType) bool { return k.Distances != m.Types[0].Distances }):
		t.Distance = PerType
	case m.Types[0].Distances.Cell == nil:
		t.Distance = Computed
	case m.Types[0].Distances.Back != nil:
		t.Distance = Table
	}
	for _, lead := range m.Tasks {
		if !m.Locations[lead].Required {
			t.Parts |= Optional
		}
	}
	one := m.Dims == 1 && !t.Parts.Has(Shipments|Reloads) && !t.Time.IsWalked()
	switch {
	case one && t.Load.InOrder():
		t.Insertion = LoadAlong
	case one:
		t.Insertion = LoadTotal
		free := !slices.ContainsFunc(m.Types, func(k VehicleType) bool { return k.MaxDist < Endless })
		if free && !t.Time.Timed() && t.Order != BackhaulsLast {
			t.Insertion = DistanceAlone
		}
	}
	m.readFleet()
	m.readMoves()
	m.readStore()
}

// readOrder sets the order of deliveries and pickups and what loads depend on.
func (m *Compiled) readOrder(d *demands) {
	del, pick, oneSided := false, false, true
	for v := m.Depots; v < m.Nodes; v++ {
		for _, a := range m.AmountsOf(int32(v)) {
			del, pick = del || a.Del != 0, pick || a.Pick != 0
		}
		d.timed = d.timed || m.Locations[v].Release > 0
		oneSided = oneSided && m.Side[v] != 0
	}
	t := &m.Traits
	if pick && m.Ordered != vrp.Mixed {
		t.Order = BackhaulsLast
		if oneSided && !t.Parts.Has(Reloads) {
			t.Order = BackhaulsLastBySide
		}
	}
	// Where all deliveries come first, the most on board is what is delivered or what is picked up.
	inOrder := d.order || del && pick && (t.Order == AnyOrder || m.Dims > 1)
	switch {
	case inOrder && m.Dims > 1:
		t.Load = SeveralInOrder
	case inOrder:
		t.Load = OneInOrder
	case m.Dims > 1:
		t.Load = SeveralTotals
	}
}

// readTime sets how times are computed.
func (m *Compiled) readTime(d demands) {
	p, t := m.P, &m.Traits
	timed, walks := d.timed || p.Objective == vrp.ShortestRoute, d.walks
	for i := range m.Types {
		k := &m.Types[i]
		timed = timed || k.Early > 0 || k.Late < Endless || k.LastStart < Endless || k.MaxDur < Endless || k.PerDur > 0
		walks = walks || int(k.Start) == m.Nodes && min(k.LastStart, k.Late) < Endless
	}
	above := func(x float64) bool { return x > 0 }
	walks = walks || slices.ContainsFunc(p.Late, above) || slices.ContainsFunc(p.Setup, above) ||
		t.Parts.Has(LIFO) || t.Parts.Has(Shipments) && t.Parts.Has(Reloads)
	switch {
	case walks && m.clocks():
		t.Time = Clocked
		m.readClocks()
	case walks && timed:
		t.Time = Walked
	case walks:
		t.Time = WalkedOrder
	case timed && !t.Parts.Has(Reloads|Shipments) && m.windowsSuffice():
		t.Time = WindowsOnly
	case timed:
		t.Time = TimeSegments
	}
}

// readFleet sets how the vehicle types are related.
func (m *Compiled) readFleet() {
	t := &m.Traits
	if len(m.Types) == 1 {
		return
	}
	t.Fleet = SeparateTypes
	for i := range m.Types {
		for j := range i {
			if m.Types[i].Family == m.Types[j].Family {
				t.Fleet = Upgrades
			}
		}
	}
	if !m.divides() {
		return
	}
	t.Fleet = Splits
	limited := slices.ContainsFunc(m.Types, func(k VehicleType) bool { return k.Allowed != nil })
	if t.Insertion == DistanceAlone && m.Types[0].Distances.Back == nil && !limited {
		t.Fleet = SplitsAnew
	}
}

// readMoves sets the moves that serve the problem.
func (m *Compiled) readMoves() {
	t := &m.Traits
	add := func(is bool, move MoveSet) {
		if is {
			t.Moves |= move
		}
	}
	optional, pairs := t.Parts.Has(Optional), t.Parts.Has(Shipments)
	add(!t.Time.IsWalked() && !pairs && len(m.Tasks) >= minPenaltyTasks && m.familiesShareCapacity(), Overload)
	add((m.Small() || optional) && !pairs, LongStrings)
	add(optional && !t.Time.IsWalked(), RouteTrials)
	add(m.choosesMembers(), ChooseMembers)
}

// readStore picks the scan of positions and the store of routes.
func (m *Compiled) readStore() {
	t := &m.Traits
	all := m.Nodes-m.Depots <= FullMost || t.Distance == PerType || m.GroupFactor() > 1 && len(m.Tasks) <= FullGroups
	switch {
	case all && m.isSimple():
		t.Scan = ScanSimple
	case all && t.OneTable():
		t.Scan = ScanTable
	case all:
		t.Scan = ScanAll
	case t.Distance == Computed:
		t.Scan = ScanNearRoutes
	default:
		t.Scan = ScanNear
	}
	groups := slices.ContainsFunc(m.Tasks, func(lead int32) bool { return m.Members[lead] != nil })
	if t.Scan.All() && t.OneTable() && !t.Parts.Has(Shipments) && t.Fleet < Splits && !groups {
		t.Store = RoutesOnly
		if m.fitsVectors() {
			t.Store = Packed
		}
	}
}

// Largest32 is the largest distance, window end or total of amounts in lists of 32-bit numbers,
// which hold the sum of any two of them.
const Largest32 = 1 << 28

// isSimple reports whether ScanSimple serves the problem.
func (m *Compiled) isSimple() bool {
	t := &m.Traits
	if !t.OneTable() || t.Distance != SymmetricTable || t.Insertion < LoadAlong || t.Fleet > SeparateTypes ||
		t.Time > WindowsOnly || t.Order == BackhaulsLast || m.Ordered == vrp.LinehaulFirst {
		return false
	}
	for i := range m.Types {
		if k := &m.Types[i]; k.Allowed != nil || k.PerDist != m.Types[0].PerDist {
			return false
		}
	}
	return true
}

// fitsVectors reports whether lists by customer hold the problem in 32 bits.
func (m *Compiled) fitsVectors() bool {
	t := &m.Traits
	if t.Scan != ScanSimple || t.Parts.Has(Optional) || m.P.Objective != vrp.MinCost {
		return false
	}
	for i := range m.Types {
		if k := &m.Types[i]; k.Reloads != nil || k.Initial != nil {
			return false
		}
		for _, x := range m.Types[i].Distances.Cell {
			if x < 0 || x > Largest32 {
				return false
			}
		}
		for _, x := range m.Types[i].Durations.Cell {
			if x < 0 || x > Largest32 {
				return false
			}
		}
	}
	var del, pick int64
	for _, v := range m.Tasks {
		del, pick = del+int64(m.Amounts[v].Del), pick+int64(m.Amounts[v].Pick)
	}
	if del > Largest32 || pick > Largest32 {
		return false
	}
	if t.Time != WindowsOnly {
		return true
	}
	// A time is at most MaxTime32 where it is looked at, and one service and one way more behind
	// it.
	for v := range m.Locations {
		if at := &m.Locations[v]; at.Service > Largest32/2 || at.Late < Endless && at.Late > Largest32 || v >= m.Depots && v < m.Nodes && at.Late >= Endless {
			return false
		}
	}
	return true
}

// choosesMembers reports whether the members of a route may be chosen anew.
func (m *Compiled) choosesMembers() bool {
	t := &m.Traits
	if t.Time != NoTime || t.Parts.Has(Shipments) || t.Order != AnyOrder || !t.OneTable() {
		return false
	}
	some := false
	for _, lead := range m.Tasks {
		for _, v := range m.Members[lead] {
			some = true
			for d, a := range m.AmountsOf(v) {
				if a != m.AmountsOf(lead)[d] {
					return false
				}
			}
			if m.Loss[v] != m.Loss[lead] {
				return false
			}
			for i := range m.Types {
				if k := &m.Types[i]; m.MayServe(k, v) != m.MayServe(k, lead) {
					return false
				}
			}
		}
	}
	return some
}

// divides reports whether routes may be cut in two: kinds of one family, and nothing that a half
// could break but its load and length.
func (m *Compiled) divides() bool {
	t := &m.Traits
	if t.Time != NoTime || t.Parts.Has(Reloads|Shipments) || t.Load.InOrder() || t.Order != AnyOrder {
		return false
	}
	for i := range m.Types {
		if m.Types[i].Family != m.Types[0].Family || m.Types[i].Initial != nil {
			return false
		}
	}
	return true
}

// Never is later than any time that a route can have.
const Never = int64(1) << 60

// clocks reports whether the times of all routes can be clocked.
func (m *Compiled) clocks() bool {
	if m.P.Late != nil || m.Traits.Parts.Has(LIFO|Reloads|PaidTime) || m.P.Objective == vrp.ShortestRoute {
		return false
	}
	for v := range m.Locations {
		if m.Locations[v].Release > 0 {
			return false
		}
	}
	for i := range m.Types {
		k := &m.Types[i]
		if k.MaxDur < Endless || len(k.Breaks) > RestMost {
			return false
		}
		for _, b := range k.Breaks {
			if b.MaxLoad != nil {
				return false
			}
		}
	}
	return true
}

// windowsSuffice reports whether windows are all that binds the time of routes.
func (m *Compiled) windowsSuffice() bool {
	if m.Traits.Parts.Has(PaidTime) || m.P.Objective == vrp.ShortestRoute {
		return false
	}
	for v := range m.Locations {
		if m.Locations[v].Release > 0 {
			return false
		}
	}
	for i := range m.Types {
		if m.Types[i].MaxDur < Endless {
			return false
		}
	}
	return true
}

// GroupFactor is how many customers stand for each other, where groups are the rule; 4 at most.
func (m *Compiled) GroupFactor() int {
	if m.Traits.Parts.Has(Shipments) {
		return 1
	}
	return max(1, min(4, (m.Nodes-m.Depots)/max(1, len(m.Tasks))))
}

package model

import (
	"haul/internal/vrp"
)

// Traits of a problem: how its times, loads, order, distances and fleet are evaluated. They depend
// on the problem alone.

// flags says which checks routes need.
func (m *Compiled) flags() {
	p := m.P
	del, pick := false, false
	for v := m.Depots; v < m.Nodes; v++ {
		for _, a := range m.AmountsOf(int32(v)) {
			del, pick = del || a.Del != 0, pick || a.Pick != 0
		}
		m.Timed = m.Timed || m.Locations[v].Release > 0
	}
	m.Sorted = pick && m.Ordered != vrp.Mixed
	// Where all deliveries come first, the most on board is what is delivered or what is picked up.
	m.Mixed = m.Mixed || del && pick && (!m.Sorted || m.Dims > 1)
	for i := range m.Types {
		k := &m.Types[i]
		m.Timed = m.Timed || k.Early > 0 || k.Late < Endless || k.LastStart < Endless || k.MaxDur < Endless || k.PerDur > 0
	}
	m.Timed = m.Timed || p.Objective == vrp.ShortestRoute
	for _, x := range p.Late {
		m.Slow = m.Slow || x > 0
	}
	for _, x := range p.Setup {
		m.Slow = m.Slow || x > 0
	}
	m.Slow = m.Slow || m.Lifo || m.Pairs && m.Trips
	for _, k := range m.Types {
		m.Slow = m.Slow || int(k.Start) == m.Nodes && min(k.LastStart, k.Late) < Endless
	}
	if m.Slow && m.clocks() {
		m.Slow, m.Timed, m.Clocked = false, true, true
		m.readClocks()
	}
	m.Prompt = m.Timed && !m.Slow && !m.Clocked && !m.Trips && !m.Pairs && m.windowsSuffice()
	for i := range m.Types {
		m.OneGrid = m.Types[i].Distances == m.Types[0].Distances && (i == 0 || m.OneGrid)
	}
}

// GroupFactor is how many customers stand for each other, where groups are the rule; 4 at most.
func (m *Compiled) GroupFactor() int {
	if m.Pairs {
		return 1
	}
	return max(1, min(4, (m.Nodes-m.Depots)/max(1, len(m.Tasks))))
}

// Never is later than any time that a route can have.
const Never = int64(1) << 60

// clocks reports whether the times of all routes can be clocked.
func (m *Compiled) clocks() bool {
	if m.P.Late != nil || m.Lifo || m.Trips || m.PerDur || m.P.Objective == vrp.ShortestRoute {
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
	if m.PerDur || m.P.Objective == vrp.ShortestRoute {
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

// Divides reports whether routes may be cut in two: kinds of one family, and nothing that a half
// could break but its load and length.
func (m *Compiled) Divides() bool {
	if len(m.Types) == 1 || m.Slow || m.Timed || m.Trips || m.Mixed || m.Sorted || m.Pairs {
		return false
	}
	for i := range m.Types {
		if m.Types[i].Family != m.Types[0].Family || m.Types[i].Initial != nil {
			return false
		}
	}
	return true
}

// IsMatrixFree reports whether insertions look at the routes of near customers alone.
func (m *Compiled) IsMatrixFree() bool { return m.OneGrid && m.Types[0].Distances.Cell == nil }

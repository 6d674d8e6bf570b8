package search

import (
	"math"
	"slices"

	"haul/internal/search/model"
	"haul/internal/search/neighbour"
	"haul/internal/vrp"
)

// Distances in the form that the inner loop reads. They are 32-bit fixed point, so that sums are
// exact in any order and a route's cost never drifts. A leg is at most longestLeg, so that the sum
// of three fits. Costs in these units guide the search; the reported cost is vrp.Problem.Cost.

const (
	longestLeg = 1 << 28
	// spread bounds the longest leg that keeps its length, in median legs: files write huge numbers
	// for "never", and a unit chosen for those would leave nothing of the others.
	spread = 1 << 20
)

// metric answers distances between a problem's nodes in units.
type metric struct {
	p      *vrp.Problem
	nodes  int
	unit   float64 // units in a distance of 1
	exact  bool    // a distance in units is the distance: nothing was rounded
	oneWay bool    // some distance differs from the way back
	table  []int32 // nil if there are too many nodes
}

func newMetric(p *vrp.Problem) *metric {
	m := &metric{p: p, nodes: len(p.Demand)}
	longest, whole := m.survey()
	if p.MaxDuration > 0 {
		// A limit is kept in these units too: none of the legs it allows, and no service, may be
		// cut short.
		longest = min(longest, 1.01*p.MaxDuration)
		for _, s := range p.Service {
			longest, whole = max(longest, s), whole && s == math.Trunc(s)
		}
	}
	switch {
	case whole && longest <= longestLeg:
		m.unit, m.exact = 1, true
	case longest == 0:
		m.unit, m.exact = 1, true
	default:
		if p.MaxDuration == 0 {
			longest = min(longest, spread*m.median())
		}
		_, exp := math.Frexp(longest)
		m.unit = math.Ldexp(longestLeg/2, -exp+1)
	}
	if m.nodes <= model.TableNodes {
		n := m.nodes
		m.table = make([]int32, n*n)
		for i := range n {
			for j := range n {
				if i != j {
					m.table[i*n+j] = m.measure(i, j)
				}
			}
		}
	}
	return m
}

// survey finds the longest leg, and whether all are whole numbers and the same both ways. Past
// TableNodes it goes by the coordinates' extent: no matrix of that size is ever made.
func (m *metric) survey() (longest float64, whole bool) {
	p, n := m.p, m.nodes
	m.oneWay = p.Open
	if n > model.TableNodes && p.Metric != vrp.Explicit {
		for v := range n {
			longest = max(longest, p.Dist(0, v))
		}
		return 2*longest + 1, p.Metric == vrp.Rounded || p.Metric == vrp.Ceil
	}
	whole = true
	for i := range n {
		for j := range i {
			a, b := p.Dist(i, j), p.Dist(j, i)
			longest = max(longest, a, b)
			whole = whole && a == math.Trunc(a) && b == math.Trunc(b)
			m.oneWay = m.oneWay || a != b
		}
	}
	return longest, whole
}

// median is that of a sample of legs that are not zero.
func (m *metric) median() float64 {
	var legs []float64
	for i := range m.nodes {
		for k := range 8 {
			if d := m.p.Dist(i, (i*7+k*k+1)%m.nodes); d > 0 {
				legs = append(legs, d)
			}
		}
	}
	if len(legs) == 0 {
		return math.Inf(1)
	}
	slices.Sort(legs)
	return legs[len(legs)/2]
}

func (m *metric) measure(i, j int) int32 {
	return int32(min(m.p.Leg(i, j)*m.unit+0.5, longestLeg))
}

func (m *metric) leg(i, j int) int32 {
	if m.table != nil {
		return m.table[i*m.nodes+j]
	}
	if i == j {
		return 0
	}
	return m.measure(i, j)
}

// region is a problem of its own made of some of the customers: numbered from 1 in the order of
// node, with distances, demands and neighbours beside each other in memory.
type region struct {
	nodes int
	node  []int32 // the problem's number of each; node[0] is the depot
	out   []int32 // out[i*nodes+j]: leg i → j
	// in[i*nodes+j]: leg j → i; the same table where distances are the same both ways
	in       []int32
	demand   []int32
	capacity int32
	service  []int32 // nil: none
	limit    int64   // of a route's legs and services; 0: none
	near     []int32 // customers by growing distance, customer v's from NearAt[v] to NearAt[v+1]
	nearAt   []int32
}

// whole is the region of all customers.
func whole(m *metric, near *neighbour.Neighbours) *region {
	p, n := m.p, m.nodes
	g := &region{nodes: n, node: make([]int32, n), demand: p.Demand, capacity: p.Capacity, out: m.table}
	for v := range g.node {
		g.node[v] = int32(v)
	}
	g.limits(m)
	g.near, g.nearAt = near.List, make([]int32, n+1)
	for v := 2; v <= n; v++ {
		g.nearAt[v] = int32((v - 1) * near.K)
	}
	if g.out != nil {
		g.transpose(m.oneWay)
	}
	return g
}

func (g *region) limits(m *metric) {
	p := m.p
	if p.MaxDuration > 0 {
		g.limit = int64(p.MaxDuration * m.unit)
		if !m.exact {
			// every leg and service was rounded by half a unit at most
			g.limit = max(1, g.limit-int64(g.nodes)-1)
		}
	}
	if p.Service != nil {
		g.service = make([]int32, g.nodes)
		for v, w := range g.node {
			g.service[v] = int32(min(p.Service[w]*m.unit+0.5, longestLeg))
		}
	}
}

func (g *region) transpose(oneWay bool) {
	g.in = g.out
	if !oneWay {
		return
	}
	n := g.nodes
	g.in = make([]int32, n*n)
	for i := range n {
		for j := range n {
			g.in[j*n+i] = g.out[i*n+j]
		}
	}
}

// part is the region of the listed customers of all, which is the whole region. local is scratch of
// all.nodes numbers, all zero before and after.
func (all *region) part(m *metric, customers, local []int32) *region {
	n := len(customers) + 1
	g := &region{nodes: n, node: make([]int32, n), demand: make([]int32, n), capacity: all.capacity,
		out: make([]int32, n*n), nearAt: make([]int32, n+1)}
	for i, c := range customers {
		g.node[i+1], g.demand[i+1] = c, all.demand[c]
		local[c] = int32(i + 1)
	}
	g.limits(m)
	for i, v := range g.node {
		row := g.out[i*n : (i+1)*n]
		switch {
		case m.table != nil:
			from := m.table[int(v)*m.nodes:][:m.nodes]
			for j, w := range g.node {
				row[j] = from[w]
			}
		case m.oneWay:
			for j, w := range g.node {
				if i != j {
					row[j] = m.leg(int(v), int(w))
				}
			}
		default: // the way back is as long, and measuring takes most of the time of making a part
			for j, w := range g.node[:i] {
				leg := m.measure(int(v), int(w))
				row[j], g.out[j*n+i] = leg, leg
			}
		}
	}
	g.transpose(m.oneWay)
	g.near = make([]int32, 0, len(customers)*min(model.Nearest, len(customers)))
	for i, c := range customers {
		g.nearAt[i+1] = int32(len(g.near))
		for _, w := range all.near[all.nearAt[c]:all.nearAt[c+1]] {
			if l := local[w]; l != 0 {
				g.near = append(g.near, l)
			}
		}
	}
	g.nearAt[n] = int32(len(g.near))
	for _, c := range customers {
		local[c] = 0
	}
	return g
}

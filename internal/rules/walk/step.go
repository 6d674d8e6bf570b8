package walk

import (
	"math"
	"math/bits"

	"haul/internal/rules"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// Allowed writes the nodes that may be next into a mask and returns how many there are, and one of
// them. If there are none, the vehicle has nowhere to go: Strand ends the route.
func (m *Machine) Allowed(r *Route, mask []uint64) (count int, one int32) {
	m.load(r)
	if r.Unvisited == 0 {
		clear(mask)
	} else {
		m.run(m.prepare)
		m.keep(m.out, m.prepare, 0)
		m.fits.FitsPrepared(m.out, &m.instance, r.amounts, mask)
		for i := range mask {
			ok := mask[i] & r.left[i]
			if m.closed != nil {
				ok &^= r.closed[i]
			}
			mask[i] = ok
			if ok != 0 {
				count += bits.OnesCount64(ok)
				one = int32(i*64 + bits.Len64(ok) - 1)
			}
		}
	}
	c := m.codes[parse.Returns]
	for d := range m.p.File.Depots {
		j := 0
		if d > 0 {
			j = m.customers + d
		}
		m.node(ir.To, r, j)
		m.run(c)
		if m.result(c) != 0 {
			mask[j>>6] |= 1 << (j & 63)
			count, one = count+1, int32(j)
		}
	}
	return count, one
}

// Visit takes the vehicle to node j.
func (m *Machine) Visit(r *Route, j int) {
	m.move(r, j, m.codes[parse.Move], 1)
	r.Cost += math.Float32frombits(m.reg[m.codes[parse.Move].outputs[0]])
	m.arrive(r, j)
	m.load(r)
	c := m.codes[parse.Ended]
	m.run(c)
	r.Done = m.result(c) != 0
}

// Follow is Visit for who knows what the route costs and when it ends.
func (m *Machine) Follow(r *Route, j int) {
	m.move(r, j, m.follow, 0)
	m.arrive(r, j)
}

// move runs Move, whose outputs from `from` on are the vehicle and the changing word.
func (m *Machine) move(r *Route, j int, c *code, from int) {
	m.load(r)
	m.node(ir.To, r, j)
	m.run(c)
	for i, at := range c.outputs[from:] {
		m.out[i] = m.reg[at]
	}
	n := copy(r.vehicle, m.out)
	if r.amounts != nil {
		r.amounts[j] = m.out[n]
		m.source(ir.To)[m.p.Amount] = m.out[n]
	}
}

// arrive closes the node that the vehicle has come to, and opens the one that it opens.
func (m *Machine) arrive(r *Route, j int) {
	if rules.DepotAt(j, m.customers) < 0 && !m.stays(r) {
		r.left[j>>6] &^= 1 << (j & 63)
		r.Unvisited--
	}
	if m.p.Opens >= 0 {
		if k := int32(m.row(j)[m.p.Opens]); k > 0 && int(k) <= m.customers {
			r.closed[k>>6] &^= 1 << (k & 63)
		}
	}
	r.At = int32(j)
	m.held = nil
}

// stays reports whether the customer in the registers of To may be visited again.
func (m *Machine) stays(r *Route) bool {
	c := m.codes[parse.Stays]
	if c == nil {
		return false
	}
	copy(m.source(ir.Vehicle), r.vehicle)
	m.run(c)
	return m.result(c) != 0
}

package walk

import (
	"math"

	"haul/internal/rules"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// Draw draws instance g as Problem.Draw does and writes its words.
func (m *Machine) Draw(d *rules.Drawing, g uint64, words []uint32) {
	p := m.p
	clear(words)
	m.rows = words[:m.count*len(p.Node)]
	clear(m.source(ir.Instance))
	g, symmetry := d.Index(g)
	for j := range m.count {
		row := m.row(j)
		if p.X >= 0 {
			x, y := d.Place(g, j, symmetry)
			row[p.X], row[p.Y] = math.Float32bits(x), math.Float32bits(y)
		}
		if p.Index >= 0 {
			row[p.Index], row[p.Depot] = uint32(j), uint32(rules.DepotAt(j, m.customers))
		}
	}
	m.fold(parse.Before)
	if c := m.codes[parse.DrawInstance]; c != nil {
		for _, k := range c.random {
			m.source(ir.Random)[k] = d.InstanceWord(g, int(k))
		}
		m.run(c)
		m.keep(m.source(ir.Instance), c, 0)
	}
	if c := m.codes[parse.DrawNode]; c != nil {
		copy(m.source(ir.Depot), m.row(0))
		for j := 1; j <= m.customers; j++ {
			for _, k := range c.random {
				m.source(ir.Random)[k] = d.NodeWord(g, j, int(k))
			}
			m.change(c, j)
		}
	}
	if c := m.codes[parse.Derive]; c != nil {
		copy(m.source(ir.Depot), m.row(0))
		for j := range m.count {
			m.change(c, j)
		}
	}
	m.fold(parse.After)
	copy(words[m.count*len(p.Node):], m.source(ir.Instance))
}

// change runs a method that changes node j.
func (m *Machine) change(c *code, j int) {
	row := m.row(j)
	copy(m.source(ir.To), row)
	m.run(c)
	m.keep(row, c, 0)
}

// fold runs Before or After for every node in order.
func (m *Machine) fold(method parse.Method) {
	c := m.codes[method]
	if c == nil {
		return
	}
	copy(m.source(ir.Depot), m.row(0))
	for j := range m.count {
		copy(m.source(ir.To), m.row(j))
		m.run(c)
		m.keep(m.source(ir.Instance), c, 0)
	}
}

// Features writes what the encoder sees of the nodes of an instance, one node after another.
func (m *Machine) Features(words []uint32, to []float32) {
	wide, c := len(m.p.Node), m.codes[parse.Features]
	copy(m.source(ir.Instance), words[m.count*wide:])
	for j := range m.count {
		copy(m.source(ir.To), words[j*wide:][:wide])
		m.run(c)
		for i, at := range c.outputs {
			to[j*len(c.outputs)+i] = math.Float32frombits(m.reg[at])
		}
	}
}

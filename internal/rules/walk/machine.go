package walk

import (
	"math"

	"haul/internal/rules"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
	"haul/internal/rules/vec"
)

// Machine runs the rules of one problem on instances of one size. One goroutine owns it.
type Machine struct {
	p         *rules.Problem
	fits      *vec.Form
	prepare   *code
	codes     [parse.Steps + 1]*code // of methods
	follow    *code                  // Move without the cost
	reg, out  []uint32
	base      [ir.Sources + 1]int
	instance  rules.Instance
	rows      []uint32 // the words of the nodes, one node after another
	customers int
	count     int // nodes
	words     int // of a mask
	routes    []Route
	left      []uint64 // of a route that begins
	closed    []uint64 // likewise; nil where no node opens another
	held      *Route   // whose vehicle and node the registers hold; nil: nobody's
}

// Route is a route through the instance that the Machine holds.
//
// Invariant: bit j of left is set if customer j is to be visited, and bit j of closed if another
// visit must open it first.
type Route struct {
	Cost      float32 // sum of what Move and Stuck returned, in order
	At        int32   // node where the vehicle stands
	Unvisited int32
	Done      bool // Ended was true, or the vehicle had nowhere to go
	vehicle   []uint32
	left      []uint64
	closed    []uint64
	amounts   []uint32 // the changing word of each node; nil if nodes have none
}

// Words returns the number of words of an instance with n customers: those of its nodes, one node
// after another, then its own.
func Words(p *rules.Problem, n int) int { return p.Nodes(n)*len(p.Node) + len(p.Instance) }

// New returns a Machine for instances with n customers that holds so many routes.
func New(p *rules.Problem, n, routes int) *Machine {
	m := &Machine{p: p, fits: vec.New(p), customers: n, count: p.Nodes(n)}
	m.words = (m.count + 63) / 64
	var sizes [ir.Sources]int
	sizes[ir.Instance], sizes[ir.Vehicle] = len(p.Instance), len(p.Vehicle)
	sizes[ir.At], sizes[ir.To], sizes[ir.Depot] = len(p.Node), len(p.Node), len(p.Node)
	sizes[ir.Count], sizes[ir.Unvisited] = 1, 1
	for _, method := range []parse.Method{parse.DrawInstance, parse.DrawNode} {
		if f := p.Func(method); f != nil {
			for _, k := range f.Reads(ir.Random) {
				sizes[ir.Random] = max(sizes[ir.Random], int(k)+1)
			}
		}
	}
	r := newRegisters(sizes)
	var moved *ir.Func
	if f := p.Func(parse.Move); f != nil {
		moved = part(f, 1, len(f.Outputs))
	}
	r.reserve(m.fits.Prepare())
	r.reserve(moved)
	for _, method := range methods {
		r.reserve(p.Func(method))
	}
	m.prepare, m.follow = r.compile(m.fits.Prepare()), r.compile(moved)
	outputs := len(m.prepare.outputs)
	for _, method := range methods {
		if m.codes[method] = r.compile(p.Func(method)); m.codes[method] != nil {
			outputs = max(outputs, len(m.codes[method].outputs))
		}
	}
	m.reg, m.out, m.base = make([]uint32, r.most), make([]uint32, outputs), r.base
	copy(m.reg, r.fixed)
	m.reg[m.base[ir.Count]] = uint32(n)
	m.instance = rules.Instance{Customers: n, Words: m.source(ir.Instance), Nodes: make([][]uint32, len(p.Node))}
	columns := make([]uint32, len(p.Node)*m.words*64)
	for w := range m.instance.Nodes {
		m.instance.Nodes[w] = columns[w*m.words*64:][:m.words*64]
	}
	m.left = make([]uint64, m.words)
	for j := 1; j <= n; j++ {
		m.left[j/64] |= 1 << (j % 64)
	}
	if p.Closed >= 0 {
		m.closed = make([]uint64, m.words)
	}
	m.reserve(routes)
	return m
}

// reserve makes the memory of routes.
func (m *Machine) reserve(routes int) {
	m.routes = make([]Route, routes)
	vehicles, left, closed := make([]uint32, routes*len(m.p.Vehicle)), make([]uint64, routes*m.words), make([]uint64, routes*len(m.closed))
	for i := range m.routes {
		r := &m.routes[i]
		r.vehicle, r.left, r.closed = vehicles[i*len(m.p.Vehicle):][:len(m.p.Vehicle)], left[i*m.words:][:m.words], closed[i*len(m.closed):][:len(m.closed)]
		if m.p.Amount >= 0 {
			r.amounts = make([]uint32, m.words*64)
		}
	}
}

// Customers returns how many customers an instance has.
func (m *Machine) Customers() int { return m.customers }

// source returns the registers of a source's words.
func (m *Machine) source(s ir.Source) []uint32 {
	return m.reg[m.base[s]:m.base[s+1]:m.base[s+1]]
}

// row returns the words of node j.
func (m *Machine) row(j int) []uint32 { return m.rows[j*len(m.p.Node):][:len(m.p.Node)] }

// Open takes up an instance by its words, which it reads until the next one.
func (m *Machine) Open(words []uint32) {
	m.held = nil
	wide := len(m.p.Node)
	m.rows = words[:m.count*wide]
	for w, column := range m.instance.Nodes {
		for j := range m.count {
			column[j] = m.rows[j*wide+w]
		}
	}
	copy(m.source(ir.Instance), words[m.count*wide:])
	if m.closed == nil {
		return
	}
	clear(m.closed)
	for j := 1; j <= m.customers; j++ {
		if m.instance.Nodes[m.p.Closed][j] != 0 {
			m.closed[j/64] |= 1 << (j % 64)
		}
	}
}

// Start begins route i at node 0.
func (m *Machine) Start(i int) *Route {
	r := &m.routes[i]
	m.held = nil
	r.Cost, r.At, r.Unvisited, r.Done = 0, 0, int32(m.customers), false
	clear(r.vehicle)
	copy(r.left, m.left)
	copy(r.closed, m.closed)
	if r.amounts != nil {
		copy(r.amounts, m.instance.Nodes[m.p.Amount])
	}
	if c := m.codes[parse.Start]; c != nil {
		m.load(r)
		m.run(c)
		m.keep(r.vehicle, c, 0)
		m.held = nil
	}
	return r
}

// load brings a route's vehicle and node into their registers.
func (m *Machine) load(r *Route) {
	if m.held == r {
		return
	}
	m.held = r
	copy(m.source(ir.Vehicle), r.vehicle)
	m.node(ir.At, r, int(r.At))
	m.reg[m.base[ir.Unvisited]] = uint32(r.Unvisited)
}

// node brings a node as a route knows it into the registers of a source.
func (m *Machine) node(s ir.Source, r *Route, j int) {
	to := m.source(s)
	copy(to, m.row(j))
	if r.amounts != nil {
		to[m.p.Amount] = r.amounts[j]
	}
}

// Strand ends a route whose vehicle has nowhere to go, or whose steps are used up.
func (m *Machine) Strand(r *Route) {
	r.Done = true
	c := m.codes[parse.Stuck]
	if c == nil {
		r.Cost += rules.DeadEnd
		return
	}
	m.load(r)
	m.run(c)
	r.Cost += math.Float32frombits(m.result(c))
}

// Context writes what the decoder sees of the vehicle.
func (m *Machine) Context(r *Route, to []float32) {
	m.load(r)
	c := m.codes[parse.Context]
	m.run(c)
	for i := range to {
		to[i] = math.Float32frombits(m.reg[c.outputs[i]])
	}
}

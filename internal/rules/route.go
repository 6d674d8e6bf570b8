package rules

import (
	"math"
	"math/bits"
	"slices"

	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// Route is one route through an instance while it is built: the vehicle, and what Haul keeps of the
// nodes.
//
// Invariant: bit j of left is set if customer j is to be visited, and bit j of closed if another
// visit must open it first. Of the customers that are left and not closed, Fits decides.
type Route struct {
	p    *Problem
	form Form
	in   *Instance

	Cost      float32 // sum of what Move and Stuck returned, in order
	Steps     int
	At        int // node where the vehicle stands
	Unvisited int
	Done      bool // Ended was true, or the vehicle had nowhere to go
	Dead      bool // the vehicle had nowhere to go

	left    []uint64
	closed  []uint64
	frame   Frame
	amounts []uint32 // the changing word of each node; nil if nodes have none
}

// NewRoute returns a route that begins at node 0.
func NewRoute(p *Problem, form Form, in *Instance) *Route {
	count := p.Nodes(in.Customers)
	r := &Route{p: p, form: form, in: in, Unvisited: in.Customers, left: make([]uint64, (count+63)/64), closed: make([]uint64, (count+63)/64)}
	for j := 1; j <= in.Customers; j++ {
		r.left[j/64] |= 1 << (j % 64)
		if p.Closed >= 0 && in.Nodes[p.Closed][j] != 0 {
			r.closed[j/64] |= 1 << (j % 64)
		}
	}
	if p.Amount >= 0 {
		r.amounts = append([]uint32(nil), in.Nodes[p.Amount]...)
	}
	r.frame[ir.Instance] = in.Words
	r.frame[ir.Vehicle] = make([]uint32, len(p.Vehicle))
	r.frame[ir.At], r.frame[ir.To] = make([]uint32, len(p.Node)), make([]uint32, len(p.Node))
	r.frame[ir.Unvisited] = []uint32{uint32(r.Unvisited)}
	r.row(r.frame[ir.At], 0)
	if p.Func(parse.Start) != nil {
		copy(r.frame[ir.Vehicle], form.Call(parse.Start, &r.frame))
	}
	return r
}

// row writes the words of node j as this route knows them.
func (r *Route) row(to []uint32, j int) {
	r.in.Row(to, j)
	if r.amounts != nil {
		to[r.p.Amount] = r.amounts[j]
	}
}

// Vehicle returns the words of the vehicle. They change with the next Visit.
func (r *Route) Vehicle() []uint32 { return r.frame[ir.Vehicle] }

// Allowed writes the nodes that may be next and returns how many there are. If there are none, the
// vehicle has nowhere to go: Strand ends the route.
func (r *Route) Allowed(mask []uint64) int {
	r.form.Fits(&r.frame, r.in, r.amounts, mask)
	count := 0
	for i := range mask {
		mask[i] &= r.left[i] &^ r.closed[i]
		count += bits.OnesCount64(mask[i])
	}
	for d := range r.p.File.Depots {
		j := 0
		if d > 0 {
			j = r.in.Customers + d
		}
		r.row(r.frame[ir.To], j)
		if r.form.Call(parse.Returns, &r.frame)[0] != 0 {
			mask[j/64] |= 1 << (j % 64)
			count++
		}
	}
	return count
}

// Visit goes to node j.
func (r *Route) Visit(j int) {
	to := r.frame[ir.To]
	r.row(to, j)
	out := r.form.Call(parse.Move, &r.frame)
	r.Cost += math.Float32frombits(out[0])
	n := copy(r.frame[ir.Vehicle], out[1:])
	if r.amounts != nil {
		r.amounts[j] = out[1+n]
		to[r.p.Amount] = out[1+n]
	}
	if DepotAt(j, r.in.Customers) < 0 {
		r.close(j)
	}
	if r.p.Opens >= 0 {
		if k := int32(to[r.p.Opens]); k > 0 && int(k) <= r.in.Customers {
			r.closed[k/64] &^= 1 << (k % 64)
		}
	}
	copy(r.frame[ir.At], to)
	r.At = j
	r.Steps++
	r.frame[ir.Unvisited][0] = uint32(r.Unvisited)
	r.Done = r.form.Call(parse.Ended, &r.frame)[0] != 0
}

// close counts the visit of a customer, who may not be visited again unless Stays says so.
func (r *Route) close(j int) {
	if r.p.Func(parse.Stays) != nil && r.form.Call(parse.Stays, &r.frame)[0] != 0 {
		return
	}
	r.left[j/64] &^= 1 << (j % 64)
	r.Unvisited--
}

// DeadEnd is the cost of a route that ends because the vehicle has nowhere to go, unless the file's
// Stuck returns another.
const DeadEnd = 1000

// Strand ends a route whose vehicle has nowhere to go.
func (r *Route) Strand() {
	r.Done, r.Dead = true, true
	if r.p.Func(parse.Stuck) == nil {
		r.Cost += DeadEnd
		return
	}
	r.Cost += math.Float32frombits(r.form.Call(parse.Stuck, &r.frame)[0])
}

// Context writes what the decoder sees of the vehicle.
func (r *Route) Context(to []float32) {
	for i, w := range r.form.Call(parse.Context, &r.frame)[:len(to)] {
		to[i] = math.Float32frombits(w)
	}
}

// NodeFeatures writes what the encoder sees of node j of an instance.
func (p *Problem) NodeFeatures(form Form, in *Instance, j int, to []float32) {
	var f Frame
	row := make([]uint32, len(p.Node))
	in.Row(row, j)
	f[ir.Instance], f[ir.To] = in.Words, row
	for i, w := range form.Call(parse.Features, &f)[:len(to)] {
		to[i] = math.Float32frombits(w)
	}
}

// Clone returns a copy of the route that goes on by itself.
func (r *Route) Clone() *Route {
	out := *r
	out.left, out.closed, out.amounts = slices.Clone(r.left), slices.Clone(r.closed), slices.Clone(r.amounts)
	for s, words := range r.frame {
		if ir.Source(s) != ir.Instance {
			out.frame[s] = slices.Clone(words)
		}
	}
	return &out
}

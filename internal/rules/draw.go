package rules

import (
	"math"
	"slices"

	"haul/internal/rng"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// Drawing configures how instances are drawn.
type Drawing struct {
	Seed       uint64
	Purpose    rng.Purpose
	Grid       int32 // integer coordinates 0..Grid scaled to the unit square; 0: uniform floats
	Symmetries int   // 8: instance g is instance g/8 under symmetry g%8 of the unit square; else 1
}

// Draw draws instance g with n customers. It is a pure function of its arguments:
//
//  1. Site of every node, and places: words 0 and 1 of Philox block j for node j
//  2. Instance.Before for every node, in order
//  3. Instance.Draw
//  4. Node.Draw for every customer
//  5. Node.Derive for every node; its depot is node 0 as it was before this step
//  6. Instance.After for every node, in order
//
// Of the random words of node j, word 0 is word 2 of Philox block j; words 1 to 4 are block 2^20 +
// j, words 5 to 8 block 2·2^20 + j, and so on. Of an instance, word 0 is word 3 of block 1, words 1
// and 2 are words 2 and 3 of block 0; words 3 to 6 are block 2^20, words 7 to 10 block 2·2^20, and
// so on.
func (p *Problem) Draw(form Form, d *Drawing, g uint64, n int) *Instance {
	in := p.empty(n)
	g, symmetry := d.Index(g)
	count := p.Nodes(n)
	if p.X >= 0 {
		for j := range count {
			x, y := d.Place(g, j, symmetry)
			in.Nodes[p.X][j], in.Nodes[p.Y][j] = math.Float32bits(x), math.Float32bits(y)
		}
	}
	p.foldNodes(form, in, parse.Before)
	var f Frame
	f[ir.Instance], f[ir.Count] = in.Words, []uint32{uint32(n)}
	if p.Func(parse.DrawInstance) != nil {
		f[ir.Random] = drawWords(p.Program.Func(parse.DrawInstance), func(k int) uint32 { return d.InstanceWord(g, k) })
		copy(in.Words, form.Call(parse.DrawInstance, &f))
	}
	if p.Func(parse.DrawNode) != nil {
		row, depot := make([]uint32, len(p.Node)), make([]uint32, len(p.Node))
		in.Row(depot, 0)
		f[ir.Depot] = depot
		for j := 1; j <= n; j++ {
			in.Row(row, j)
			f[ir.To], f[ir.Random] = row, drawWords(p.Program.Func(parse.DrawNode), func(k int) uint32 { return d.NodeWord(g, j, k) })
			in.SetRow(j, form.Call(parse.DrawNode, &f))
		}
	}
	p.Complete(form, in)
	return in
}

// Complete fills in what follows from an instance's data: steps 5 and 6 of Draw.
func (p *Problem) Complete(form Form, in *Instance) {
	if p.Func(parse.Derive) != nil {
		var f Frame
		row, depot := make([]uint32, len(p.Node)), make([]uint32, len(p.Node))
		in.Row(depot, 0)
		f[ir.Instance], f[ir.To], f[ir.Depot] = in.Words, row, depot
		for j := range p.Nodes(in.Customers) {
			in.Row(row, j)
			in.SetRow(j, form.Call(parse.Derive, &f))
		}
	}
	p.foldNodes(form, in, parse.After)
}

// foldNodes calls Before or After for every node in order.
func (p *Problem) foldNodes(form Form, in *Instance, m parse.Method) {
	if p.Func(m) == nil {
		return
	}
	var f Frame
	row, depot := make([]uint32, len(p.Node)), make([]uint32, len(p.Node))
	in.Row(depot, 0)
	f[ir.Instance], f[ir.To], f[ir.Depot] = in.Words, row, depot
	for j := range p.Nodes(in.Customers) {
		in.Row(row, j)
		copy(in.Words, form.Call(m, &f))
	}
}

// empty returns an instance whose nodes have their sites and nothing else.
func (p *Problem) empty(n int) *Instance {
	in := &Instance{Customers: n, Words: make([]uint32, len(p.Instance)), Nodes: make([][]uint32, len(p.Node))}
	count := p.Nodes(n)
	for w := range in.Nodes {
		in.Nodes[w] = make([]uint32, (count+63)/64*64)
	}
	if p.Index >= 0 {
		for j := range count {
			in.Nodes[p.Index][j], in.Nodes[p.Depot][j] = uint32(j), uint32(DepotAt(j, n))
		}
	}
	return in
}

// Index returns which instance g shows, and under which symmetry of the square.
func (d *Drawing) Index(g uint64) (index uint64, symmetry int) {
	if d.Symmetries > 1 {
		return g / uint64(d.Symmetries), int(g % uint64(d.Symmetries))
	}
	return g, 0
}

// Place returns where node j of instance g lies.
func (d *Drawing) Place(g uint64, j, symmetry int) (x, y float32) {
	u := rng.At(d.Seed, g, uint32(j), d.Purpose)
	return reflect(d.coordinate(u[0]), d.coordinate(u[1]), symmetry)
}

// coordinate returns the coordinate that a random word stands for.
func (d *Drawing) coordinate(word uint32) float32 {
	if d.Grid > 0 {
		return float32(rng.Below(word, uint32(d.Grid)+1)) / float32(d.Grid)
	}
	return rng.Float(word)
}

// reflect applies symmetry k of the unit square: bit 0 mirrors x, bit 1 mirrors y, bit 2 then swaps
// them.
func reflect(x, y float32, k int) (float32, float32) {
	if k&1 != 0 {
		x = 1 - x
	}
	if k&2 != 0 {
		y = 1 - y
	}
	if k&4 != 0 {
		x, y = y, x
	}
	return x, y
}

// drawWords returns the random words that a function may read under any settings, by number.
func drawWords(f *ir.Func, word func(k int) uint32) []uint32 {
	reads := f.Reads(ir.Random)
	if len(reads) == 0 {
		return nil
	}
	out := make([]uint32, slices.Max(reads)+1)
	for _, k := range reads {
		out[k] = word(int(k))
	}
	return out
}

// furtherBlocks is the distance between the Philox blocks of a node.
const furtherBlocks = 1 << 20

// NodeWord returns random word k of node j of instance g.
func (d *Drawing) NodeWord(g uint64, j, k int) uint32 {
	if k == 0 {
		return rng.At(d.Seed, g, uint32(j), d.Purpose)[2]
	}
	return rng.At(d.Seed, g, uint32((k+3)/4*furtherBlocks+j), d.Purpose)[(k-1)%4]
}

// InstanceWord returns random word k of instance g.
func (d *Drawing) InstanceWord(g uint64, k int) uint32 {
	switch k {
	case 0:
		return rng.At(d.Seed, g, 1, d.Purpose)[3]
	case 1, 2:
		return rng.At(d.Seed, g, 0, d.Purpose)[k+1]
	}
	return rng.At(d.Seed, g, uint32((k+1)/4*furtherBlocks), d.Purpose)[(k-3)%4]
}

package reference

import (
	"math"
	"math/bits"

	"haul/internal/kernel"
	"haul/internal/rules"
	"haul/internal/rules/eval"
)

// The rules of a problem file, in its plain form. The words of an instance are those of its nodes,
// one node after another, and then its own.

// fileInstance reads an instance's words.
func fileInstance(p *rules.Problem, words []int32) *rules.Instance {
	wide := len(p.Node)
	nodes := (len(words) - len(p.Instance)) / wide
	in := &rules.Instance{Customers: nodes - p.File.Depots, Nodes: make([][]uint32, wide)}
	for w := range in.Nodes {
		in.Nodes[w] = make([]uint32, (nodes+63)/64*64)
		for j := range nodes {
			in.Nodes[w][j] = uint32(words[j*wide+w])
		}
	}
	for _, word := range words[nodes*wide:] {
		in.Words = append(in.Words, uint32(word))
	}
	return in
}

func newRoute(p *rules.Problem, words []int32) *rules.Route {
	return rules.NewRoute(p, eval.New(p), fileInstance(p, words))
}

// customers is how many an instance of a problem file has.
func (t *Tour) customers() int {
	p := t.rules.Set.Problem()
	return (len(t.nodes)-len(p.Instance))/len(p.Node) - p.File.Depots
}

// fileAllowed lists the nodes that a file's rules allow, in order.
func fileAllowed(t *Tour) (out []int) {
	p := t.rules.Set.Problem()
	mask := make([]uint64, (p.Nodes(t.customers())+63)/64)
	t.file.Allowed(mask)
	for i, w := range mask {
		for ; w != 0; w &= w - 1 {
			out = append(out, i*64+bits.TrailingZeros64(w))
		}
	}
	return out
}

func fileContext[F Float](t *Tour) (out []F) {
	context := make([]float32, len(t.rules.Set.Context()))
	t.file.Context(context)
	for _, x := range context {
		out = append(out, F(x))
	}
	return out
}

func fileFeatures[F Float](feature Matrix[F], words []int32, set kernel.RuleSet) {
	p := set.Problem()
	in, row := fileInstance(p, words), make([]float32, len(set.Features()))
	for j := range p.Nodes(in.Customers) {
		p.NodeFeatures(eval.New(p), in, j, row)
		for k, x := range row {
			feature.Row(j)[k] = F(x)
		}
	}
}

// fileGenerate draws the instance of global index g.
func fileGenerate[F Float](posX, posY []F, words []int32, o *kernel.Generate, g uint64) {
	p := o.Set.Problem()
	d := &rules.Drawing{Seed: o.Seed, Purpose: o.Purpose, Grid: o.Grid, Symmetries: o.Symmetries}
	in := p.Draw(eval.New(p), d, g, len(posX)-p.File.Depots)
	row := make([]uint32, len(p.Node))
	for j := range posX {
		in.Row(row, j)
		for w, word := range row {
			words[j*len(row)+w] = int32(word)
		}
		if posX[j], posY[j] = 0, 0; p.X >= 0 {
			posX[j], posY[j] = F(math.Float32frombits(row[p.X])), F(math.Float32frombits(row[p.Y]))
		}
	}
	for i, word := range in.Words {
		words[len(posX)*len(row)+i] = int32(word)
	}
}

// begin returns the first action of a start that is to begin at a customer: that one, or the next
// that the rules allow; -1 if they allow no node.
func (t *Tour) begin(customer int) int {
	if t.file == nil {
		return customer
	}
	allowed := t.Allowed()
	best := -1
	for _, j := range allowed {
		if rules.DepotAt(j, t.customers()) >= 0 {
			continue
		}
		if j >= customer {
			return j
		}
		if best < 0 {
			best = j
		}
	}
	if best < 0 && len(allowed) > 0 {
		best = allowed[len(allowed)-1]
	}
	return best
}

// stuck reports whether the vehicle may go nowhere.
func (t *Tour) stuck() bool { return t.file != nil && len(t.Allowed()) == 0 }

// finish returns what a route costs that has cost that much: one that has not ended by now ends as
// a vehicle does that may go nowhere.
func finish[F Float](t *Tour, cost F) F {
	if t.file == nil || t.file.Done {
		return cost
	}
	t.file.Strand()
	return F(t.file.Cost)
}

// visit goes to node j and returns what the route then costs, which has cost that much.
func visit[F Float](d *Decoder[F], t *Tour, j int, cost F) F {
	from, to := 0, 0
	if t.file == nil {
		from, to = t.Leg(j)
	}
	t.Visit(j)
	if t.file != nil {
		return F(t.file.Cost)
	}
	return cost + distance(d.PosX, d.PosY, from, to)
}

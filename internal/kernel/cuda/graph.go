package cuda

import (
	"slices"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/fuse"
	"haul/internal/kernel/cuda/optimizer"
)

// order finds, for each op, the earlier ops it must wait for: those that wrote what it reads, and
// those that read or wrote what it writes. Everything else may run beside it.
type order struct {
	writer  map[*kernel.Tensor]int   // op that last wrote the tensor
	readers map[*kernel.Tensor][]int // ops that read it since
}

func newOrder() *order {
	return &order{writer: map[*kernel.Tensor]int{}, readers: map[*kernel.Tensor][]int{}}
}

// add returns what op i must wait for and records its accesses.
func (o *order) add(i int, op kernel.Op) []int {
	var deps []int
	seen := map[int]bool{i: true}
	need := func(j int) {
		if !seen[j] {
			seen[j] = true
			deps = append(deps, j)
		}
	}
	op.Args(func(t *kernel.Tensor, a kernel.Access) {
		t = t.Root()
		if w, ok := o.writer[t]; ok {
			need(w)
		}
		if a != kernel.Read {
			for _, r := range o.readers[t] {
				need(r)
			}
		}
	})
	op.Args(func(t *kernel.Tensor, a kernel.Access) {
		t = t.Root()
		if a == kernel.Read {
			o.readers[t] = append(o.readers[t], i)
			return
		}
		o.writer[t], o.readers[t] = i, nil
	})
	return deps
}

// dependencies lists for each op of the program, PerShard then Once, what it waits for. An op over
// the flat buffers waits for all before it, since it reads what they leave there or rewrites the
// weights that they read; so does the closing advance, listed last.
func dependencies(p *kernel.Program, serial bool) [][]int {
	ops := append(append([]kernel.Op(nil), p.PerShard...), p.Once...)
	deps := make([][]int, len(ops)+1)
	o := newOrder()
	waited := make([]bool, len(ops))
	for i, op := range ops {
		deps[i] = o.add(i, op)
		if serial && i > 0 {
			deps[i] = []int{i - 1}
		}
		if _, ok := op.(kernel.Flat); ok {
			deps[i] = sinks(waited[:i])
		}
		for _, j := range deps[i] {
			waited[j] = true
		}
	}
	deps[len(ops)] = sinks(waited)
	return deps
}

// sinks are the ops that nothing waits for yet.
func sinks(waited []bool) []int {
	var out []int
	for i, w := range waited {
		if !w {
			out = append(out, i)
		}
	}
	return out
}

// waitFor is what an op waits for whose dependencies ended in these nodes, each once: ops without a
// launch share what they would wait for.
func waitFor[N comparable](deps []int, ends [][]N) []N {
	var wait []N
	for _, j := range deps {
		for _, n := range ends[j] {
			if !slices.Contains(wait, n) {
				wait = append(wait, n)
			}
		}
	}
	return wait
}

// chain adds an op's launches one behind the other, those that stand beside the one before them
// behind what that one waits for, and returns what the op's followers wait for; one aside is not
// part of that.
func chain[N any](launches []ready, wait []N, add func(l ready, wait []N) (N, error)) ([]N, error) {
	before := wait
	for _, l := range launches {
		behind := wait
		if l.beside {
			behind = before
		}
		n, err := add(l, behind)
		if err != nil {
			return nil, err
		}
		if l.aside {
			continue
		}
		if l.beside {
			wait = append(slices.Clip(wait), n)
		} else {
			before, wait = wait, []N{n}
		}
	}
	return wait, nil
}

// ancestors are, by node, all that come before it along the edges.
type ancestors[N comparable] map[N]map[N]bool

func (a ancestors[N]) add(n N, wait []N) {
	all := map[N]bool{}
	for _, w := range wait {
		all[w] = true
		for e := range a[w] {
			all[e] = true
		}
	}
	a[n] = all
}

// essential leaves out of what a node waits for those that others of them wait for: a node with one
// edge is launched soonest. That pays where kernels are many and short; where they fill the card it
// cost 2 % of the step, by the order in which kernels came to run.
func (a ancestors[N]) essential(wait []N) []N {
	return slices.DeleteFunc(slices.Clone(wait), func(n N) bool {
		return slices.ContainsFunc(wait, func(w N) bool { return a[w][n] })
	})
}

// record builds the step's graphs: one of all ops; where a peer needs the host, one up to it and
// one from there on; and where an update has several parts, one without the exchange for all but
// the last. On the context's thread.
func (r *runner) record() (err error) {
	end, cut := len(r.launches), len(r.launches)
	for i := range r.launches {
		if o, ok := r.op(i).(*kernel.Exchange); ok && optimizer.InGraph(o) == nil {
			cut = i
			if r.onHost, err = newHostExchange(r.d.ctx, o.Peer, r.sets[0].grads.at, r.prog.Layout.Len); err != nil {
				return err
			}
		}
	}
	if r.exec, r.nodes, err = r.graph(0, cut, true); err != nil {
		return err
	}
	if cut < end {
		var more int
		if r.onHost.rest, more, err = r.graph(cut+1, end, true); err != nil {
			return err
		}
		r.nodes += more
	}
	if r.prog.Share.Runs() > 1 || r.every > 1 && r.prog.Exchanges() {
		r.piece, _, err = r.graph(0, end, false)
	}
	return err
}

// graph builds one of the ops from one place up to another, and counts its kernels.
func (r *runner) graph(from, to int, exchange bool) (*cu.Exec, int, error) {
	g, err := r.d.ctx.NewGraph()
	if err != nil {
		return nil, 0, err
	}
	nodes := 0
	// what an op's followers wait for: its last node or, where it has none, what it would wait for
	ends := newEndings[cu.Node](len(r.launches))
	foreign := map[cu.Node]bool{} // not kernels of this package
	earlier := ancestors[cu.Node]{}
	var asides []cu.Node // what only ops over the flat buffers wait for
	for i, deps := range dependencies(r.prog, r.serial) {
		if i < from || i >= to {
			continue // in another graph, which the stream keeps apart
		}
		add := func(l ready, wait []cu.Node) (cu.Node, error) {
			nodes++
			if r.small {
				wait = earlier.essential(wait)
			}
			n, err := r.add(g, l, wait, foreign)
			if err != nil {
				return n, err
			}
			earlier.add(n, wait)
			if l.aside {
				asides = append(asides, n)
			}
			return n, r.rank(g, n, r.op(i), l)
		}
		if ls := r.launches[i]; len(ls) > 0 && ls[0].part != 0 {
			for _, l := range ls { // one for each part
				last, err := chain([]ready{l}, ends.wait(deps, l.part), add)
				if err != nil {
					return nil, 0, err
				}
				ends.set(i, l.part, last)
			}
			continue
		}
		wait := ends.wait(deps, 0)
		if _, flat := r.op(i).(kernel.Flat); flat {
			wait, asides = append(wait, asides...), nil
		}
		if o, ok := r.op(i).(*kernel.Exchange); ok {
			if ends.set(i, 0, wait); !exchange {
				continue
			}
			if wait, err = r.exchange(g, optimizer.InGraph(o), wait); err != nil {
				return nil, 0, err
			}
			for _, n := range wait {
				foreign[n] = true
			}
		}
		last, err := chain(r.launches[i], wait, add)
		if err != nil {
			return nil, 0, err
		}
		ends.set(i, 0, last)
	}
	e, err := g.Instantiate()
	return e, nodes, err
}

// urgent reports whether a kernel has followers that wait for it; what ends a weight's gradient has
// none before the end of the step, and the masks of a layer are made long before they are read.
func urgent(op kernel.Op, l ready) bool {
	switch op.(type) {
	case *kernel.LinearGradW, *fuse.LayerWeights, *fuse.LayerMasks:
		return false
	}
	return !l.aside
}

// rank lets urgent kernels go before others where both could start, and those that say so before
// all. On the context's thread.
func (r *runner) rank(g *cu.Graph, n cu.Node, op kernel.Op, l ready) error {
	if !r.d.overlaps || !l.first && !urgent(op, l) {
		return nil
	}
	return g.Urgent(n, l.first)
}

// exchange lets the peer record its nodes.
func (r *runner) exchange(g *cu.Graph, p optimizer.GraphPeer, wait []cu.Node) ([]cu.Node, error) {
	if err := r.d.ctx.Wait(r.d.stream); err != nil {
		return nil, err
	}
	if r.gathered != 0 {
		return p.RecordGather(g, r.d.stream, r.gathered, r.sets[0].grads.at, r.prog.Layout.Len, wait)
	}
	return p.Record(g, r.d.stream, r.sets[0].grads.at, r.prog.Layout.Len, wait)
}

// add puts a launch behind what it waits for. On the context's thread.
func (r *runner) add(g *cu.Graph, l ready, wait []cu.Node, foreign map[cu.Node]bool) (cu.Node, error) {
	if !r.d.overlaps || l.after {
		return g.Add(l.function, l.geometry, l.args, wait)
	}
	var before, after []cu.Node
	for _, n := range wait {
		if foreign[n] {
			after = append(after, n)
		} else {
			before = append(before, n)
		}
	}
	return g.AddOverlapping(l.function, l.geometry, l.args, before, after)
}

// op is the one at place i of PerShard, then Once; nil for the closing advance.
func (r *runner) op(i int) kernel.Op {
	if i < len(r.prog.PerShard) {
		return r.prog.PerShard[i]
	}
	if i -= len(r.prog.PerShard); i < len(r.prog.Once) {
		return r.prog.Once[i]
	}
	return nil
}

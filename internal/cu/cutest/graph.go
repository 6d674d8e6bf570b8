package cutest

import (
	"slices"
	"unsafe"
)

type graph struct{ nodes []*node }

// node is a launch of a graph, with those that it runs after.
type node struct {
	launch launch
	after  []*node
}

// ready is a graph that can be launched: its launches in the order in which they run.
type ready struct{ order []*node }

// nodeParams is CUDA_KERNEL_NODE_PARAMS.
type nodeParams struct {
	function      uintptr
	grid, block   [3]uint32
	shared        uint32
	params, extra unsafe.Pointer
}

func addKernel(out *uintptr, g uintptr, deps *uintptr, n uintptr, params unsafe.Pointer) uintptr {
	to, ok := find[*graph](g)
	if !ok {
		return gone(false)
	}
	p := (*nodeParams)(params)
	f, ok := find[*function](p.function)
	if !ok {
		return gone(false)
	}
	l, err := f.bind(p.grid, p.block, p.shared, p.params)
	if err != nil {
		return said(invalidValue, "%v", err)
	}
	a := &node{launch: l}
	for _, d := range unsafe.Slice(deps, n) {
		before, ok := find[*node](d)
		if !ok || !slices.Contains(to.nodes, before) {
			return said(invalidValue, "kernel %s waits for what is not in its graph", f.p.Name)
		}
		a.after = append(a.after, before)
	}
	to.nodes = append(to.nodes, a)
	*out = here.add(a)
	return success
}

// addDependencies adds edges by which a kernel may start before the other has ended; it waits for
// the end itself, and here runs behind it.
func addDependencies(g uintptr, from, to *uintptr, edges unsafe.Pointer, n uintptr) uintptr {
	if !known[*graph](g) {
		return gone(false)
	}
	for i := range n {
		a, ok := find[*node](unsafe.Slice(from, n)[i])
		b, there := find[*node](unsafe.Slice(to, n)[i])
		if !ok || !there {
			return gone(false)
		}
		b.after = append(b.after, a)
	}
	return success
}

func instantiate(out *uintptr, g uintptr, flags uint64) uintptr {
	from, ok := find[*graph](g)
	if !ok {
		return gone(false)
	}
	order, ok := sorted(from.nodes, here.cards[0].Late)
	if !ok {
		return said(invalidValue, "the graph's edges are a circle")
	}
	*out = here.add(&ready{order})
	return success
}

// sorted puts launches into an order that the edges allow: as they were added, or late, in which of
// those that could run the last one goes first.
func sorted(nodes []*node, late bool) ([]*node, bool) {
	left := slices.Clone(nodes)
	if late {
		slices.Reverse(left)
	}
	done := map[*node]bool{}
	var order []*node
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(n *node) bool {
			return !slices.ContainsFunc(n.after, func(a *node) bool { return !done[a] })
		})
		if i < 0 {
			return nil, false
		}
		done[left[i]], order = true, append(order, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return order, true
}

func launchGraph(e, s uintptr) uintptr {
	r, ok := find[*ready](e)
	if !ok || here.fault != nil {
		return gone(ok)
	}
	for _, n := range r.order {
		if code := execute(&n.launch); code != success {
			return code
		}
	}
	return success
}

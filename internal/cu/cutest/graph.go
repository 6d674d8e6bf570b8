package cutest

import (
	"slices"
	"unsafe"
)

type graph struct{ nodes []*node }

// node is a launch of a graph, with the launches that it depends on.
type node struct {
	launch launch
	after  []*node
}

// ready is an instantiated graph: its launches in execution order.
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

// addDependencies adds programmatic edges, with which a kernel may start before its predecessor
// ends and waits for that end itself. Here it starts after the end.
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
	order, ok := sorted(from.nodes, here.gpus[0].Late)
	if !ok {
		return said(invalidValue, "the graph's edges are a circle")
	}
	*out = here.add(&ready{order})
	return success
}

// sorted returns launches in an order that the edges allow: in the order of adding, or if late with
// the last launch that can run first.
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

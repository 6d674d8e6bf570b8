// Package vrp is the vehicle routing problem itself: instances and where they come
// from, optional parts, what a route costs, when its vehicle is where, who may call it valid, and
// the exact optimum. It knows no tensors and no policies.
//
// Shape letters: B instances in a batch, N customers in an instance. Node 0 is the depot, nodes
// 1..N are customers, so an instance has N+1 nodes.
package vrp

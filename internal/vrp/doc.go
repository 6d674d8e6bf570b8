// Package vrp is the capacitated vehicle routing problem itself: instances and where they come
// from, what a route costs, who may call it valid, the exact optimum, the classical yardstick and
// CVRPLIB's files. It knows no tensors and no policies.
//
// Shape letters: B instances in a batch, N customers in an instance. Node 0 is the depot, nodes
// 1..N are customers, so an instance has N+1 nodes.
package vrp

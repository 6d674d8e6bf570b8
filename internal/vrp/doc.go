// Package vrp is the vehicle routing problem itself: instances and their generators, optional
// constraints, costs and times of routes, the validator, and the exact optimum. It knows no
// tensors and no policies.
//
// Shape letters: B instances in a batch, N customers in an instance. Node 0 is the depot and
// nodes 1..N are customers, so an instance has N+1 nodes.
package vrp

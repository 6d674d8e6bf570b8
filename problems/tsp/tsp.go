// Package tsp is the travelling salesman problem (Dantzig, Fulkerson and Johnson 1954,
// https://doi.org/10.1287/opre.2.4.393): one tour visits all places; minimise its length. Instances
// are drawn as by Kool et al. (2019, https://arxiv.org/abs/1803.08475): places in the unit square.
package tsp

import "haul/problem"

// Node is a place of the tour; node 0 is where it begins and ends.
type Node struct {
	problem.Place
	problem.Site
}

// Instance holds the words that all nodes share.
type Instance struct{ Share float32 } // one customer as a share of all

// Vehicle has no state: its node and the places left are all that counts.
type Vehicle struct{}

// Draw notes the number of customers.
func (in *Instance) Draw(r *problem.Random, n int32) { in.Share = 1 / float32(max(1, n)) }

// Fits reports whether the tour may go on to a place that it has not visited.
func (v *Vehicle) Fits(in *Instance, at, to *Node) bool { return true }

// Returns reports whether the tour may close.
func (v *Vehicle) Returns(in *Instance, at, to *Node, unvisited int32) bool { return unvisited == 0 }

// Move goes to a place and returns the distance.
func (v *Vehicle) Move(in *Instance, at, to *Node) float32 {
	return problem.Distance(at.Place, to.Place)
}

// Ended reports whether the tour is closed.
func (v *Vehicle) Ended(in *Instance, at *Node, unvisited int32) bool {
	return unvisited == 0 && at.Depot >= 0
}

// Features are the place, a customer's share of all, and 1 where the tour begins.
func (n *Node) Features(in *Instance) [4]float32 {
	f := [4]float32{n.X, n.Y, in.Share, 0}
	if n.Depot >= 0 {
		f[3] = 1
	}
	return f
}

// Context is the share of the places that are left.
func (v *Vehicle) Context(in *Instance, at *Node, unvisited int32) [1]float32 {
	return [1]float32{float32(float32(unvisited) * in.Share)}
}

// Steps is a visit of each place and the return.
func Steps(n int32) int32 { return 2 * n }

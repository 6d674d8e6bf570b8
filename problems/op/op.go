// Package op is the orienteering problem (Golden, Levy and Vohra 1987,
// https://doi.org/10.1002/1520-6750(198706)34:3%3C307::AID-NAV3220340302%3E3.0.CO;2-D): collect
// prizes on one tour within a limit of length. Prizes grow with the distance to the depot, as drawn
// by Kool et al. (2019, https://arxiv.org/abs/1803.08475). The cost is minus the sum of prizes.
package op

import "haul/problem"

// Node is a place with a prize; node 0 is the depot.
type Node struct {
	problem.Place
	problem.Site
	Prize float32 // 0 at the depot
	Home  float32 // distance to the depot
}

// Instance holds the words that all nodes share.
type Instance struct {
	Limit    float32 // longest tour
	Farthest float32 // distance of the farthest place from the depot
}

// Vehicle is the state of the tour.
type Vehicle struct{ Left float32 } // length that may still be driven

// Settings configure what is drawn.
type Settings struct {
	Limit float32 `default:"3" min:"0" doc:"longest tour"`
}

// Before finds the farthest place.
func (in *Instance) Before(n, depot *Node) {
	in.Farthest = max(in.Farthest, problem.Distance(n.Place, depot.Place))
}

// Draw sets the limit.
func (in *Instance) Draw(r *problem.Random, s *Settings, n int32) { in.Limit = s.Limit }

// Draw sets a prize from 0.01 to 1, which the farthest place has.
func (n *Node) Draw(r *problem.Random, s *Settings, in *Instance, depot *Node) {
	n.Prize = float32(1+int32(99*problem.Distance(n.Place, depot.Place)/in.Farthest)) / 100
}

// Derive fills in the way home.
func (n *Node) Derive(in *Instance, depot *Node) { n.Home = problem.Distance(n.Place, depot.Place) }

// Start puts the vehicle at the depot.
func (v *Vehicle) Start(in *Instance) { v.Left = in.Limit }

// Fits reports whether the vehicle could go to a place and then home.
func (v *Vehicle) Fits(in *Instance, at, to *Node) bool {
	return problem.Distance(at.Place, to.Place)+to.Home <= v.Left
}

// Returns reports whether the vehicle may go home: always, and then the tour is over.
func (v *Vehicle) Returns(in *Instance, at, to *Node, unvisited int32) bool { return true }

// Move drives to a node and returns minus its prize.
func (v *Vehicle) Move(in *Instance, at, to *Node) (cost float32) {
	v.Left -= problem.Distance(at.Place, to.Place)
	return -to.Prize
}

// Ended reports whether the tour is over.
func (v *Vehicle) Ended(in *Instance, at *Node, unvisited int32) bool { return at.Depot >= 0 }

// Features are the place, the prize and the way home.
func (n *Node) Features(in *Instance) [4]float32 { return [...]float32{n.X, n.Y, n.Prize, n.Home} }

// Context is the share of the length that is left.
func (v *Vehicle) Context(in *Instance, at *Node, unvisited int32) [1]float32 {
	return [...]float32{v.Left / in.Limit}
}

// Steps is a visit of each place and the way home.
func Steps(n int32) int32 { return n + 1 }

// Package cvrpl is the capacitated vehicle routing problem whose routes have a limit of length
// (Laporte, Desrochers and Nobert 1984, https://doi.org/10.1002/net.3230140113), the way home
// included. Limits are drawn as by RouteFinder (Berto et al. 2024,
// https://arxiv.org/abs/2406.15007), the rest as by Kool et al. (2019,
// https://arxiv.org/abs/1803.08475).
package cvrpl

import "haul/problem"

// Node is a customer or the depot.
type Node struct {
	problem.Place
	problem.Site
	Demand int32   // 0 at the depot
	Home   float32 // distance to the depot
}

// Instance holds the words that all nodes share.
type Instance struct {
	Capacity int32   // of a vehicle, in the unit of demands
	Own      int32   // capacity of this instance's vehicles if capacities differ, else 0
	Farthest float32 // distance of the farthest customer from the depot
	Limit    float32 // longest route
}

// Vehicle is the state of the current vehicle.
type Vehicle struct {
	Left   int32   // capacity left
	Length float32 // of the route so far
}

// Settings configure what is drawn.
type Settings struct {
	Capacity    int32   `default:"30" min:"1" doc:"capacity of a vehicle"`
	DemandMin   int32   `default:"1" min:"0" doc:"least demand"`
	DemandMax   int32   `default:"10" min:"0" doc:"greatest demand"`
	CapacityMin int32   `default:"0" min:"0" doc:"least capacity, if capacities differ"`
	CapacityMax int32   `default:"0" min:"0" doc:"greatest capacity; 0 gives every instance Capacity"`
	Range       float32 `default:"2.8" min:"0" doc:"greatest limit"`
}

// loadUnit is the capacity of vehicles whose own differ from instance to instance: demands are
// stated in parts of it.
const loadUnit = 1 << 20

// Before finds the farthest customer.
func (in *Instance) Before(n, depot *Node) {
	in.Farthest = max(in.Farthest, problem.Distance(n.Place, depot.Place))
}

// Draw draws the limit, uniform between twice the way to the farthest customer, so that every
// customer can be served, and Range if that is more; and the capacity.
func (in *Instance) Draw(r *problem.Random, s *Settings, n int32) {
	low := float32(2 * in.Farthest)
	in.Limit = low + float32(r.Float()*(max(s.Range, low)-low))
	in.Capacity, in.Own = s.Capacity, 0
	if s.CapacityMax > 0 {
		span := s.CapacityMax - s.CapacityMin + 1
		in.Capacity, in.Own = loadUnit, s.CapacityMin+min(r.At(1).Below(span), r.At(2).Below(span))
	}
}

// Draw draws a demand.
func (n *Node) Draw(r *problem.Random, s *Settings, in *Instance, depot *Node) {
	n.Demand = s.DemandMin + r.Below(s.DemandMax-s.DemandMin+1)
	if in.Own > 0 {
		n.Demand = problem.MulDiv(n.Demand, loadUnit, in.Own)
	}
}

// Derive fills in the way home.
func (n *Node) Derive(in *Instance, depot *Node) { n.Home = problem.Distance(n.Place, depot.Place) }

// Start puts a full vehicle at the depot.
func (v *Vehicle) Start(in *Instance) { v.Left = in.Capacity }

// Fits reports whether the vehicle may go to an unserved customer, and could then be
// home within the limit.
func (v *Vehicle) Fits(in *Instance, at, to *Node) bool {
	return to.Demand <= v.Left && v.Length+problem.Distance(at.Place, to.Place)+to.Home <= in.Limit
}

// Returns reports whether the vehicle may go to the depot: not from the depot while customers
// remain.
func (v *Vehicle) Returns(in *Instance, at, to *Node, unvisited int32) bool {
	return unvisited == 0 || at.Depot < 0
}

// Move drives to a node and returns the distance.
func (v *Vehicle) Move(in *Instance, at, to *Node) float32 {
	way := problem.Distance(at.Place, to.Place)
	v.Left, v.Length = v.Left-to.Demand, v.Length+way
	if to.Depot >= 0 {
		v.Left, v.Length = in.Capacity, 0
	}
	return way
}

// Ended reports whether all customers are served and the last vehicle is back.
func (v *Vehicle) Ended(in *Instance, at *Node, unvisited int32) bool {
	return unvisited == 0 && at.Depot >= 0
}

// Features are the place, the demand as a share of the capacity, and 1 at the depot.
func (n *Node) Features(in *Instance) [4]float32 {
	f := [4]float32{n.X, n.Y, float32(n.Demand) / float32(in.Capacity), 0}
	if n.Depot >= 0 {
		f[3] = 1
	}
	return f
}

// Context is the shares of the capacity and of the length that are left.
func (v *Vehicle) Context(in *Instance, at *Node, unvisited int32) [2]float32 {
	return [2]float32{float32(v.Left) / float32(in.Capacity), 1 - v.Length/in.Limit}
}

// Package cvrp is the capacitated vehicle routing problem (Dantzig and Ramser 1959,
// https://doi.org/10.1287/mnsc.6.1.80): vehicles of one capacity serve all customers from a depot;
// minimise the distance driven. Instances are drawn as by Kool et al. (2019,
// https://arxiv.org/abs/1803.08475): places in the unit square, integer demands.
package cvrp

import "haul/problem"

// Node is a customer or the depot.
type Node struct {
	problem.Place
	problem.Site
	Demand int32 // 0 at the depot
}

// Instance holds the words that all nodes share.
type Instance struct {
	Capacity int32 // of a vehicle, in the unit of demands
	Own      int32 // capacity of this instance's vehicles if capacities differ, else 0
}

// Vehicle is the state of the current vehicle.
type Vehicle struct{ Left int32 } // capacity left

// Settings configure what is drawn.
type Settings struct {
	Capacity    int32 `default:"30" min:"1" doc:"capacity of a vehicle"`
	DemandMin   int32 `default:"1" min:"0" doc:"least demand"`
	DemandMax   int32 `default:"10" min:"0" doc:"greatest demand"`
	CapacityMin int32 `default:"0" min:"0" doc:"least capacity, if capacities differ"`
	CapacityMax int32 `default:"0" min:"0" doc:"greatest capacity; 0 gives every instance Capacity"`
}

// loadUnit is the capacity of vehicles whose own differ from instance to instance: demands are
// stated in parts of it.
const loadUnit = 1 << 20

// Draw draws the capacity: short routes are as usual as they are in CVRPLIB's X.
func (in *Instance) Draw(r *problem.Random, s *Settings, n int32) {
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

// Start puts a full vehicle at the depot.
func (v *Vehicle) Start(in *Instance) { v.Left = in.Capacity }

// Fits reports whether the vehicle may go to an unserved customer.
func (v *Vehicle) Fits(in *Instance, at, to *Node) bool { return to.Demand <= v.Left }

// Returns reports whether the vehicle may go to the depot: not from the depot while customers
// remain.
func (v *Vehicle) Returns(in *Instance, at, to *Node, unvisited int32) bool {
	return unvisited == 0 || at.Depot < 0
}

// Move drives to a node and returns the distance.
func (v *Vehicle) Move(in *Instance, at, to *Node) float32 {
	v.Left -= to.Demand
	if to.Depot >= 0 {
		v.Left = in.Capacity
	}
	return problem.Distance(at.Place, to.Place)
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

// Context is the share of the capacity that is left.
func (v *Vehicle) Context(in *Instance, at *Node, unvisited int32) [1]float32 {
	return [1]float32{float32(v.Left) / float32(in.Capacity)}
}

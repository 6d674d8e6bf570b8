// Package colour is capacitated vehicle routing whose goods have colours: a route carries at most
// two of them.
package colour

import "haul/problem"

// Node is a customer or the depot.
type Node struct {
	problem.Place
	problem.Site
	Demand int32
	Colour int32 // 0 to 5
}

// Instance holds what all nodes share.
type Instance struct{ Capacity int32 }

// Vehicle is the state of the current vehicle.
type Vehicle struct {
	Left    int32
	Colours int32 // bit c is set if the vehicle carries colour c
}

// Settings configure what is drawn.
type Settings struct {
	Capacity int32 `default:"30" min:"9" doc:"capacity of a vehicle"`
	Colours  int32 `default:"6" min:"1" max:"6" doc:"colours of goods"`
}

const most = 2 // colours on a route

func (in *Instance) Draw(r *problem.Random, s *Settings, n int32) { in.Capacity = s.Capacity }

func (n *Node) Draw(r *problem.Random, s *Settings, in *Instance, depot *Node) {
	n.Demand = 1 + r.Below(9)
	n.Colour = r.Below(s.Colours)
}

func (v *Vehicle) Start(in *Instance) { v.Left = in.Capacity }

// count returns how many bits of a set of colours are set.
func count(set int32) (n int32) {
	for c := range 6 {
		n += set >> c & 1
	}
	return n
}

func (v *Vehicle) Fits(in *Instance, at, to *Node) bool {
	return to.Demand <= v.Left && count(v.Colours|1<<to.Colour) <= most
}

func (v *Vehicle) Returns(in *Instance, at, to *Node, unvisited int32) bool {
	return unvisited == 0 || at.Depot < 0
}

func (v *Vehicle) Move(in *Instance, at, to *Node) float32 {
	v.Left -= to.Demand
	v.Colours |= 1 << to.Colour
	if to.Depot >= 0 {
		v.Left, v.Colours = in.Capacity, 0
	}
	return problem.Distance(at.Place, to.Place)
}

func (v *Vehicle) Ended(in *Instance, at *Node, unvisited int32) bool {
	return unvisited == 0 && at.Depot >= 0
}

func (n *Node) Features(in *Instance) [6]float32 {
	f := [6]float32{n.X, n.Y, float32(n.Demand) / float32(in.Capacity), 0, float32(n.Colour & 1), float32(n.Colour >> 1)}
	if n.Depot >= 0 {
		f[3] = 1
	}
	return f
}

func (v *Vehicle) Context(in *Instance, at *Node, unvisited int32) [7]float32 {
	f := [7]float32{float32(v.Left) / float32(in.Capacity)}
	for c := range 6 {
		f[c+1] = float32(v.Colours >> c & 1)
	}
	return f
}

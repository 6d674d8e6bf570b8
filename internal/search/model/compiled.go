// Package model compiles routing problems for the search: locations with their amounts and times in
// whole units, vehicle types with their limits, distances and durations in tables. Durations,
// services and opening times are rounded up and closing times down, so that routes that keep these
// limits keep the problem's own. Costs here guide the search; reported costs come from package vrp.
package model

import (
	"slices"

	"haul/internal/vrp"
)

// Endless is later than any time.
const Endless = int64(1) << 46

// Location is a customer or depot.
type Location struct {
	Early, Late      int64
	Service          int64
	Release          int64
	Delivery, Pickup int32   // in the first dimension
	Price            float64 // of leaving it out
	Required         bool
	Partner          int32 // the other half of its shipment; 0: none
	// the customer that stands for its shipment or group: the pickup, the first member
	Representative int32
	IsDelivery     bool // the delivery of a shipment
}

// VehicleType is a vehicle type in units.
type VehicleType struct {
	Start, End           int32
	Count                int // of vehicles
	Capacity             []int32
	Initial              []int32
	Early, LastStart     int64
	Late                 int64
	MaxDur, MaxDist      int64
	MaxStops             int
	Fixed, PerDist       float64
	Own                  float64 // the fixed cost without what the objective adds to it
	PerDur               float64 // per unit
	Distances, Durations *Matrix
	Allowed              []uint64 // bits; nil: all
	Reloads              []int32
	MaxReloads           int
	Family               int // kinds of one family differ in capacity, number and costs alone
	Breaks               []vrp.Break
	Rests                []breakTimes // the same in units, where times are clocked
	StartSeg, EndSeg     TimeSegment
	reloadSegs           []TimeSegment // by reload depot: leaving it
}

// Compiled is the compiled problem.
type Compiled struct {
	P               *vrp.Problem
	Nodes, Depots   int
	Traits          Traits
	Locations       []Location
	Types           []VehicleType
	Dims            int
	Amounts         []LoadSegment // by place: one segment per dimension
	OverloadWeights []int64       // by dimension: of a unit of overload
	PenaltyUnit     float64       // what a unit of weighed overload costs at first
	// by place: 1 where it gives, 2 where it gets, in the first dimension
	Side         []uint8
	Ordered      vrp.BackhaulRule
	Setup        []int64   // by place, where times are clocked; nil: none
	Spans        [][]Span  // by place: its windows, where routes are walked
	Shipment     [][]int32 // by place: the amounts of its shipment
	Loss         []float64 // by place: prizes of the others of its group
	Members      [][]int32 // by lead of a group: its members; nil: none
	Tasks        []int32   // leads of all tasks
	Row          []int32   // by lead: its index in tasks, plus 1
	DistUnit     float64   // units in a distance of 1
	TimeUnit     float64
	wholeTimes   bool // lengths of time are whole numbers of units
	Near         []int32
	NearAt       []int32
	Leg          float64 // a typical leg's cost, the unit of temperature
	LeastPerDist float64 // of all kinds
	Upper        float64 // more than serving any customer alone costs
	// of the tasks by row, from the last cover of a small problem; nil: none
	Prices []float64
}

// Small reports whether every cycle of annealing begins anew.
func (m *Compiled) Small() bool { return len(m.Tasks) <= SmallMost }

// AmountsOf is a place's segments of load.
func (m *Compiled) AmountsOf(v int32) []LoadSegment {
	return m.Amounts[int(v)*m.Dims:][:m.Dims]
}

func (m *Compiled) MayServe(k *VehicleType, v int32) bool {
	return k.Allowed == nil || k.Allowed[v>>6]>>(uint(v)&63)&1 != 0
}

// NearOf is the neighbour list of a customer.
func (m *Compiled) NearOf(v int32) []int32 { return m.Near[m.NearAt[v]:m.NearAt[v+1]] }

// Without returns those of the customers that are required: not optional, and of a required group
// none visited, in which case its first member stands for it.
func (m *Compiled) Without(unserved []int32) []int32 {
	out := []int32{}
	missing := map[int32]int{}
	for _, v := range unserved {
		lead := m.Locations[v].Representative
		if list := m.Members[lead]; list != nil {
			if missing[lead]++; missing[lead] == len(list) && m.Locations[lead].Required {
				out = append(out, lead)
			}
			continue
		}
		if m.Locations[v].Required {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

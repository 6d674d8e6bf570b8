package files

import (
	"math"

	"haul/internal/vrp"
)

// FromProblem is the document of a problem: Problem gives it back as it was.
func FromProblem(p *vrp.Problem) *Document {
	n := len(p.Demand)
	d := &Document{Name: p.Name, Capacity: p.Capacity, Demands: p.Demand, IDs: p.IDs, Names: p.Names, Fractions: p.Fractions, Clock: p.Clock, Duration: p.MaxDuration, Service: p.Service,
		Vehicles: p.Vehicles, Open: p.Open, Depots: p.Depots, Speed: p.Speed, Pickups: p.Pickup, Setup: p.Setup, Release: p.Release,
		Optional: p.Optional, Prizes: p.Prize, LIFO: p.LIFO, Priority: p.Priority, Late: p.Late}
	if p.Metric == vrp.Explicit && p.Profiles == nil {
		d.Distances = square(p.Weights, n)
	} else if p.Metric != vrp.Explicit {
		d.Distance = metrics[p.Metric]
	}
	if p.Backhauls != vrp.Mixed {
		d.Backhauls = backhauls[p.Backhauls]
	}
	if p.Objective != vrp.MinCost {
		d.Objective = objectives[p.Objective]
	}
	for i := range p.X {
		d.Coords = append(d.Coords, []float64{p.X[i], p.Y[i]})
	}
	for _, f := range p.Profiles {
		d.Profiles = append(d.Profiles, Profile{Name: f.Name, Distances: square(f.Distance, n), Durations: square(f.Duration, n)})
	}
	for _, list := range p.Windows {
		d.Windows = append(d.Windows, append([]Span{}, unspans(list)...))
	}
	for _, list := range p.Needs {
		d.Skills = append(d.Skills, append([]int32{}, list...)) // null is refused in lists
	}
	for _, x := range p.Dimensions {
		d.Dimensions = append(d.Dimensions, Dimension{Name: x.Name, Demands: x.Delivery, Pickups: x.Pickup})
	}
	for _, g := range p.Groups {
		d.Groups = append(d.Groups, Group{Name: g.Name, Members: g.Members, Required: g.Required})
	}
	for _, s := range p.Shipments {
		d.Shipments = append(d.Shipments, Shipment{Pickup: s.Pickup, Delivery: s.Delivery, Amount: s.Amount})
	}
	for _, t := range p.Fleet {
		d.Fleet = append(d.Fleet, fromVehicle(t))
	}
	return d
}

func fromVehicle(t vrp.VehicleType) Vehicle {
	v := Vehicle{Name: t.Name, Count: t.Count, Numbers: t.Numbers, Capacity: t.Capacity, Start: t.Start, End: t.End, MaxStops: t.MaxStops,
		FixedCost: t.FixedCost, DurationCost: t.DurationCost, Profile: t.Profile, Skills: t.Skills, Allowed: t.Allowed, Reloads: t.Reloads,
		MaxReloads: t.MaxReloads, InitialLoad: t.InitialLoad, LatestStart: finite(t.LatestStart), MaxDuration: finite(t.MaxDuration), MaxDistance: finite(t.MaxDistance)}
	if t.DistanceCost != 1 {
		v.DistanceCost = &t.DistanceCost
	}
	if t.Shift != vrp.Always {
		v.Shift = unspans([]vrp.Window{t.Shift})[0]
	}
	for _, b := range t.Breaks {
		v.Breaks = append(v.Breaks, Break{Windows: unspans(b.Windows), Duration: b.Duration, MaxLoad: b.MaxLoad})
	}
	return v
}

func unspans(list []vrp.Window) (out []Span) {
	for _, w := range list {
		if math.IsInf(w.To, 1) {
			out = append(out, Span{w.From})
		} else {
			out = append(out, Span{w.From, w.To})
		}
	}
	return out
}

// finite is a limit, or nothing where there is none.
func finite(x float64) *float64 {
	if math.IsInf(x, 1) {
		return nil
	}
	return &x
}

func square(m []float64, n int) (rows [][]float64) {
	if m == nil {
		return nil
	}
	for i := range n {
		rows = append(rows, m[i*n:(i+1)*n:(i+1)*n])
	}
	return rows
}

package search

import (
	"math"
	"slices"
	"strings"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// feature is one part that a sample problem may have.
type feature struct {
	name string
	add  func(d *sampler)
	// without names features that a problem cannot have at the same time.
	without string
}

// sampler builds a sample problem: customers on an integer grid of 100 by 100, demands from 1 to 9,
// vehicles for about ten customers.
type sampler struct {
	*vrp.Problem
	model.Stream
	customers int
	types     []vrp.VehicleType
}

func (d *sampler) depots() int { return d.DepotCount() }

// perCustomer calls f for a share of the customers, in percent.
func (d *sampler) perCustomer(percent int, f func(v int)) {
	for v := d.depots(); v < len(d.Demand); v++ {
		if d.IntN(100) < percent {
			f(v)
		}
	}
}

// column returns a value below most for a share of the customers, and 0 for the others.
func (d *sampler) column(most, percent int) []float64 {
	out := make([]float64, len(d.Demand))
	d.perCustomer(percent, func(v int) { out[v] = float64(d.IntN(most)) })
	return out
}

func (d *sampler) everyType(f func(t *vrp.VehicleType)) {
	for i := range d.types {
		f(&d.types[i])
	}
}

func (d *sampler) windows(percent, width int) {
	if d.Windows == nil {
		d.Windows = make([][]vrp.Window, len(d.Demand))
	}
	d.perCustomer(percent, func(v int) {
		from := float64(d.IntN(300))
		d.Windows[v] = []vrp.Window{{From: from, To: from + float64(width/2+d.IntN(width))}}
	})
}

func (d *sampler) pickups(rule vrp.BackhaulRule) {
	d.Backhauls, d.Pickup = rule, make([]int32, len(d.Demand))
	d.perCustomer(35, func(v int) {
		d.Pickup[v] = int32(1 + d.IntN(9))
		if rule != vrp.Mixed || d.IntN(3) > 0 {
			d.Demand[v] = 0
		}
	})
}

func (d *sampler) ship(count int) {
	n := len(d.Demand)
	for k := range min(count, d.customers/2) {
		s := vrp.Shipment{Pickup: int32(n - 1 - 2*k), Delivery: int32(n - 2 - 2*k), Amount: make([]int32, 1+len(d.Dimensions))}
		for i := range s.Amount {
			s.Amount[i] = int32(1 + d.IntN(9))
		}
		d.Demand[s.Pickup], d.Demand[s.Delivery] = 0, 0
		if d.Optional != nil {
			d.Optional[s.Delivery] = d.Optional[s.Pickup]
		}
		d.Shipments = append(d.Shipments, s)
	}
}

// features are applied in this order.
var features = []feature{
	{"depots", nil, ""}, // two more, made first
	{"types", func(d *sampler) {
		large := vrp.NewVehicleType(90)
		large.FixedCost, d.types[0].FixedCost = 80, 30
		d.types = append(d.types, large)
	}, ""},
	{"windows", func(d *sampler) { d.windows(100, 120) }, ""},
	{"several-windows", func(d *sampler) {
		d.windows(60, 40)
		d.perCustomer(40, func(v int) {
			if w := d.Windows[v]; len(w) == 1 {
				d.Windows[v] = append(w, vrp.Window{From: w[0].To + 30, To: w[0].To + 120})
			}
		})
	}, ""},
	{"late", func(d *sampler) { d.windows(50, 60); d.Late = d.column(5, 60) }, ""},
	{"service", func(d *sampler) { d.Service = d.column(12, 90) }, ""},
	{"setup", func(d *sampler) { d.Setup = d.column(8, 60) }, ""},
	{"release", func(d *sampler) { d.Release = d.column(90, 50) }, ""},
	{"mixed-backhauls", func(d *sampler) { d.pickups(vrp.Mixed) }, "backhauls-last linehaul-first"},
	{"backhauls-last", func(d *sampler) { d.pickups(vrp.BackhaulsLast) }, "linehaul-first shipments lifo dimension"},
	{"linehaul-first", func(d *sampler) { d.pickups(vrp.LinehaulFirst) }, "shipments lifo dimension"},
	{"dimension", func(d *sampler) {
		second := vrp.Dimension{Name: "volume", Delivery: make([]int32, len(d.Demand)), Pickup: make([]int32, len(d.Demand))}
		d.perCustomer(80, func(v int) { second.Delivery[v], second.Pickup[v] = int32(d.IntN(5)), int32(d.IntN(3)) })
		d.Dimensions = append(d.Dimensions, second)
		d.everyType(func(t *vrp.VehicleType) { t.Capacity = append(t.Capacity, 25) })
	}, ""},
	{"optional", func(d *sampler) {
		d.Optional, d.Prize = make([]bool, len(d.Demand)), d.column(70, 100)
		d.perCustomer(60, func(v int) { d.Optional[v] = true })
	}, ""},
	{"shipments", func(d *sampler) { d.ship(5) }, "groups lifo"},
	{"lifo", func(d *sampler) { d.ship(6); d.LIFO = true }, "groups"},
	{"groups", func(d *sampler) {
		for v := d.depots(); v+2 < len(d.Demand); v += 3 {
			g := vrp.Group{Required: d.IntN(3) > 0}
			for k := range 2 + d.IntN(2) {
				g.Members = append(g.Members, int32(v+k))
			}
			d.Groups = append(d.Groups, g)
		}
	}, ""},
	{"skills", func(d *sampler) {
		d.Needs = make([][]int32, len(d.Demand))
		d.perCustomer(15, func(v int) { d.Needs[v] = []int32{3} })
		able := vrp.NewVehicleType(d.types[0].Capacity...)
		able.Skills, able.DistanceCost = []int32{3, 4}, 2
		d.types = append(d.types, able)
	}, ""},
	{"allowed", func(d *sampler) {
		d.perCustomer(80, func(v int) { d.types[0].Allowed = append(d.types[0].Allowed, int32(v)) })
		d.types = append(d.types, vrp.NewVehicleType(d.types[0].Capacity...))
	}, ""},
	{"priority", func(d *sampler) {
		d.Priority = make([]int, len(d.Demand))
		d.perCustomer(40, func(v int) { d.Priority[v] = d.IntN(4) })
		d.everyType(func(t *vrp.VehicleType) { t.Count = 1 + d.customers/25 })
	}, ""},
	{"counted", func(d *sampler) { d.everyType(func(t *vrp.VehicleType) { t.Count = 1 + d.customers/7 }) }, ""},
	{"open-end", func(d *sampler) { d.types[0].End = vrp.None }, "open-start"},
	{"open-start", func(d *sampler) { d.types[0].Start = vrp.None }, "release"},
	{"fixed-cost", func(d *sampler) { d.everyType(func(t *vrp.VehicleType) { t.FixedCost += 60 }) }, ""},
	{"duration-cost", func(d *sampler) { d.types[0].DurationCost = 2 }, ""},
	{"max-duration", func(d *sampler) { d.everyType(func(t *vrp.VehicleType) { t.MaxDuration = 480 }) }, ""},
	{"max-distance", func(d *sampler) { d.types[0].MaxDistance = 420 }, ""},
	{"max-stops", func(d *sampler) { d.types[0].MaxStops = 6 }, ""},
	{"shift", func(d *sampler) { d.types[0].Shift = vrp.Window{From: 10, To: 600} }, ""},
	{"latest-start", func(d *sampler) { d.types[0].LatestStart = 90 }, "open-start"},
	{"reloads", func(d *sampler) {
		d.types[0].Reloads, d.types[0].MaxReloads, d.types[0].Count = []int{0}, 3, 3
	}, "open-start"},
	{"breaks", func(d *sampler) {
		d.types[0].Breaks = []vrp.Break{{Windows: []vrp.Window{{From: 60, To: 240}}, Duration: 15}}
	}, ""},
	{"break-load", func(d *sampler) {
		d.types[0].Breaks = []vrp.Break{{Windows: []vrp.Window{{From: 60, To: 240}}, Duration: 15, MaxLoad: make([]int32, 1+len(d.Dimensions))}}
		d.types[0].Breaks[0].MaxLoad[0] = 20
	}, "breaks"},
	{"initial-load", func(d *sampler) {
		d.types[0].InitialLoad = make([]int32, len(d.types[0].Capacity))
		d.types[0].InitialLoad[0] = 8
	}, ""},
	{"profiles", func(d *sampler) {
		for i := range d.types {
			var f vrp.Profile
			for v := range d.Demand {
				for w := range d.Demand {
					way := d.Dist(v, w)
					if v < w {
						way = math.Floor(way * 1.2)
					}
					f.Distance, f.Duration = append(f.Distance, way), append(f.Duration, math.Floor(way*float64(8+i)/8))
				}
			}
			d.types[i].Profile = i
			d.Profiles = append(d.Profiles, f)
		}
	}, "speed"},
	{"speed", func(d *sampler) { d.Speed = 1.5 }, ""},
	{"exact", func(d *sampler) { d.Metric = vrp.Exact }, ""},
	{"equal", func(d *sampler) { d.perCustomer(100, func(v int) { d.Demand[v] = 4 }) }, ""},
	{"empty", func(d *sampler) { d.perCustomer(10, func(v int) { d.Demand[v] = 0 }) }, ""},
	{"fewest", func(d *sampler) { d.Objective = vrp.FewestVehicles }, "shortest"},
	{"shortest", func(d *sampler) { d.Objective = vrp.ShortestRoute }, ""},
}

// sample builds a problem with the named features, which stand between blanks.
func sample(index uint64, customers int, names string) *vrp.Problem {
	has := strings.Fields(names)
	depots := 1
	if slices.Contains(has, "depots") {
		depots = 3
	}
	n := depots + customers
	d := &sampler{Stream: model.NewStream(7, index), customers: customers, types: []vrp.VehicleType{vrp.NewVehicleType(50)},
		Problem: &vrp.Problem{Depots: depots, Demand: make([]int32, n), X: make([]float64, n), Y: make([]float64, n), Metric: vrp.Rounded}}
	for v := range n {
		if d.X[v], d.Y[v] = float64(d.IntN(100)), float64(d.IntN(100)); v >= depots {
			d.Demand[v] = int32(1 + d.IntN(9))
		}
	}
	for i := range features {
		f := &features[i]
		if at := slices.Index(has, f.name); at >= 0 {
			has = slices.Delete(has, at, at+1)
			if f.add != nil {
				f.add(d)
			}
		}
	}
	if len(has) > 0 {
		panic("no such feature: " + strings.Join(has, " "))
	}
	for k := 1; k < depots; k++ { // the same vehicles at the other depots
		t := d.types[0]
		if t.Start != vrp.None {
			t.Start = k
		}
		if t.End != vrp.None {
			t.End = k
		}
		d.types = append(d.types, t)
	}
	d.Fleet = d.types
	return d.Problem
}

package files

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"haul/internal/limits"
	"haul/internal/vrp"
)

// Converting VROOM's input to a Problem. What a reader could break: a profile's Distance is what
// the vehicle pays for a leg, by default its duration; so MaxDistance is max_travel_time if the
// vehicle pays for time.

// build makes the problem.
func (v *VROOM) build(in *vroomInput) error {
	p := &vrp.Problem{Metric: vrp.Explicit}
	v.Problem = p
	at, ends, err := v.depots(in)
	if err != nil {
		return err
	}
	p.Depots = len(v.places)
	for i := range v.tasks {
		if err := in.known(v.called(i), v.tasks[i].half.vroomPlace); err != nil {
			return err
		}
		at = append(at, v.tasks[i].half.vroomPlace)
	}
	if err := v.demands(p, len(at)); err != nil {
		return err
	}
	v.names(p, at)
	for i := 0; i < len(in.Shipments); i++ {
		first := len(at) - 2*len(in.Shipments) + 2*i
		p.Shipments = append(p.Shipments, vrp.Shipment{Pickup: int32(first), Delivery: int32(first + 1), Amount: v.padded(in.Shipments[i].Amount)})
	}
	if err := v.fleet(in, p, at, ends); err != nil {
		return err
	}
	p.Weights = p.Profiles[0].Distance
	if p.Setup != nil && p.X == nil {
		// Where the place before is the same there is no setup, and places are told apart by their
		// coordinates: these stand for the index.
		v.Blind = true
		for _, place := range at {
			p.X, p.Y = append(p.X, float64(*place.Index)), append(p.Y, 0)
		}
	}
	return nil
}

// depots gathers where vehicles begin and end; ends has the depots of each.
func (v *VROOM) depots(in *vroomInput) (at []vroomPlace, ends [][2]int, err error) {
	known := map[string]int{}
	for i := range in.Vehicles {
		c := &in.Vehicles[i]
		var pair [2]int
		for k, place := range []vroomPlace{{c.Start, c.StartIndex}, {c.End, c.EndIndex}} {
			pair[k] = vrp.None
			if place.Location == nil && place.Index == nil {
				continue
			}
			if err := in.known(fmt.Sprintf("vehicles[%d].%s", i, []string{"start", "end"}[k]), place); err != nil {
				return nil, nil, err
			}
			number, ok := known[place.key()]
			if !ok {
				number = len(at)
				known[place.key()], at = number, append(at, place)
			}
			pair[k] = number
		}
		if pair == [2]int{vrp.None, vrp.None} {
			return nil, nil, fmt.Errorf("vehicles[%d] has neither start nor end: one of them is needed", i)
		}
		ends = append(ends, pair)
	}
	v.places = at
	return at, ends, nil
}

// called names a task in an error.
func (v *VROOM) called(i int) string {
	return fmt.Sprintf("%s %d", v.tasks[i].kind, v.tasks[i].half.ID)
}

// padded is a list of amounts with every dimension.
func (v *VROOM) padded(list []int32) []int32 {
	out := make([]int32, max(1, v.amounts))
	copy(out, list)
	return out
}

// demands sets what each task asks for; places are numbered behind the depots.
func (v *VROOM) demands(p *vrp.Problem, n int) error {
	p.Demand = make([]int32, n)
	for range v.amounts - 1 {
		p.Dimensions = append(p.Dimensions, vrp.Dimension{Delivery: make([]int32, n), Pickup: make([]int32, n)})
	}
	setup, service, priority, skills, windows, pickups := false, false, false, false, false, false
	p.Setup, p.Service, p.Priority = make([]float64, n), make([]float64, n), make([]int, n)
	p.Needs, p.Windows, p.Pickup = make([][]int32, n), make([][]vrp.Window, n), make([]int32, n)
	for i := range v.tasks {
		t, at := &v.tasks[i], p.Depots+i
		if t.kind == "job" {
			for d, a := range t.delivery {
				if d == 0 {
					p.Demand[at] = a
				} else {
					p.Dimensions[d-1].Delivery[at] = a
				}
			}
			for d, a := range t.pickup {
				if pickups = pickups || a != 0; d == 0 {
					p.Pickup[at] = a
				} else {
					p.Dimensions[d-1].Pickup[at] = a
				}
			}
		}
		p.Setup[at], p.Service[at], p.Priority[at] = t.half.Setup, t.half.Service, t.priority
		setup, service, priority = setup || t.half.Setup > 0, service || t.half.Service > 0, priority || t.priority > 0
		p.Needs[at] = t.skills
		skills = skills || t.skills != nil
		list, err := spans(v.called(i)+".time_windows", t.half.Windows)
		if err != nil {
			return err
		}
		p.Windows[at] = list
		windows = windows || list != nil
	}
	// What nobody asks for is no part of the problem.
	drop(&p.Setup, setup)
	drop(&p.Service, service)
	drop(&p.Priority, priority)
	drop(&p.Needs, skills)
	drop(&p.Windows, windows)
	drop(&p.Pickup, pickups)
	return nil
}

func drop[T any](list *[]T, keep bool) {
	if !keep {
		*list = nil
	}
}

// names gives places their ids, their descriptions, and coordinates where all have them.
func (v *VROOM) names(p *vrp.Problem, at []vroomPlace) {
	count := map[int64]int{}
	for _, t := range v.tasks {
		count[t.half.ID]++
	}
	located := true
	for i, place := range at {
		switch {
		case i < p.Depots:
			p.IDs = append(p.IDs, fmt.Sprintf("depot %d", i+1))
		case count[v.tasks[i-p.Depots].half.ID] > 1:
			p.IDs = append(p.IDs, v.called(i-p.Depots))
		default:
			p.IDs = append(p.IDs, fmt.Sprint(v.tasks[i-p.Depots].half.ID))
		}
		located = located && place.Location != nil
		said := ""
		if i >= p.Depots {
			said = v.tasks[i-p.Depots].half.Description
		}
		p.Names = append(p.Names, printable(said))
	}
	drop(&p.Names, slices.ContainsFunc(p.Names, func(s string) bool { return s != "" }))
	if !located {
		return
	}
	for _, place := range at {
		p.X, p.Y = append(p.X, place.Location[0]), append(p.Y, place.Location[1])
	}
}

// paid is how a vehicle pays for a way.
type paid struct {
	profile          string
	factor, hour, km float64
	costs            bool // by the matrix of costs
}

// fleet makes a type of every kind of vehicle.
func (v *VROOM) fleet(in *vroomInput, p *vrp.Problem, at []vroomPlace, ends [][2]int) error {
	profiles, types := map[paid]int{}, map[string]int{}
	for i := range in.Vehicles {
		c := &in.Vehicles[i]
		where := fmt.Sprintf("vehicles[%d]", i)
		t, pay, err := v.vehicle(in, c, where)
		if err != nil {
			return err
		}
		t.Start, t.End = ends[i][0], ends[i][1]
		number, ok := profiles[pay]
		if !ok {
			number = len(p.Profiles)
			profiles[pay] = number
			made := int64(number + 1)
			if err := errors.Join(v.limits.Over(limits.Profiles, made), v.limits.Over(limits.Matrix, 2*made*int64(len(at))*int64(len(at)))); err != nil {
				return err
			}
			p.Profiles = append(p.Profiles, v.matrices(in, pay, at))
		}
		t.Profile = number
		key := fmt.Sprintf("%#v", t)
		same, ok := types[key]
		if !ok {
			same = len(p.Fleet)
			types[key] = same
			if err := v.limits.Over(limits.Types, int64(same+1)); err != nil {
				return err
			}
			p.Fleet, v.byType = append(p.Fleet, t), append(v.byType, nil)
		}
		p.Fleet[same].Count++
		p.Fleet[same].Numbers = append(p.Fleet[same].Numbers, int32(i))
		v.byType[same] = append(v.byType[same], i)
	}
	for k, list := range v.byType { // a type is called by the ids of its vehicles
		var ids []string
		for _, i := range list[:min(len(list), mostIDs)] {
			ids = append(ids, fmt.Sprint(v.vehicles[i].ID))
		}
		if more := len(list) - len(ids); more > 0 {
			ids = append(ids, fmt.Sprintf("%d more", more))
		}
		p.Fleet[k].Name = strings.Join(ids, ", ")
	}
	return nil
}

// mostIDs is how many ids of vehicles that are alike a table names.
const mostIDs = 4

// vehicle is one vehicle as a type of its own, and how it pays.
func (v *VROOM) vehicle(in *vroomInput, c *vroomVehicle, where string) (vrp.VehicleType, paid, error) {
	t := vrp.NewVehicleType()
	if v.amounts > 0 {
		t.Capacity = v.padded(c.Capacity)
	}
	pay := paid{profile: c.profile(), factor: c.factor(), hour: 3600, costs: in.Matrices[c.profile()].Costs != nil}
	if !(pay.factor > 0 && pay.factor <= 5) {
		return t, pay, fmt.Errorf("%s: speed_factor is %g: above 0 and up to 5 is possible", where, pay.factor)
	}
	if c.Costs != nil {
		t.FixedCost, pay.km = c.Costs.Fixed, c.Costs.PerKm
		if c.Costs.PerHour != nil {
			pay.hour = *c.Costs.PerHour
		}
		switch {
		case c.Costs.PerTaskHour != 0:
			return t, pay, fmt.Errorf("%s: costs.per_task_hour is not honoured", where)
		case c.Costs.Fixed < 0 || pay.hour < 0 || pay.km < 0:
			return t, pay, fmt.Errorf("%s: costs must not be below 0", where)
		case pay.costs && (c.Costs.PerHour != nil || pay.km != 0):
			return t, pay, fmt.Errorf("%s: costs.per_hour and costs.per_km beside a matrix of costs contradict it", where)
		}
	}
	if m, ok := in.Matrices[pay.profile]; ok && m.Distances == nil && (pay.km > 0 || c.MaxDistance != nil) {
		return t, pay, fmt.Errorf("%s: a cost per km and max_distance need matrices.%s.distances", where, pay.profile)
	}
	byTime, byKm := !pay.costs && pay.km == 0, !pay.costs && pay.hour == 0 && pay.km > 0
	switch {
	case byTime:
		t.DistanceCost, pay.hour = pay.hour/3600, 3600
	case byKm:
		t.DistanceCost, pay.km = pay.km/1000, 1000
	}
	for _, limit := range []struct {
		key  string
		x    *float64
		pays bool
		what string
	}{{"max_travel_time", c.MaxTravelTime, byTime, "time alone"}, {"max_distance", c.MaxDistance, byKm, "distance alone (costs.per_hour 0, costs.per_km above it)"}} {
		if limit.x == nil {
			continue
		}
		if !limit.pays {
			return t, pay, fmt.Errorf("%s: %s is honoured where the vehicle pays for %s", where, limit.key, limit.what)
		}
		if !(*limit.x >= 0) {
			return t, pay, fmt.Errorf("%s: %s is %g: it must not be below 0", where, limit.key, *limit.x)
		}
		t.MaxDistance = *limit.x
	}
	t.Skills = c.Skills
	if c.MaxTasks != nil {
		if *c.MaxTasks < 1 {
			return t, pay, fmt.Errorf("%s: max_tasks is %d: leave out a vehicle that takes none", where, *c.MaxTasks)
		}
		t.MaxStops = *c.MaxTasks
	}
	if c.Window != nil {
		shift, err := spans(where+".time_window", []Span{c.Window})
		if err != nil {
			return t, pay, err
		}
		t.Shift = shift[0]
	}
	for i, b := range c.Breaks {
		windows, err := spans(fmt.Sprintf("%s.breaks[%d].time_windows", where, i), b.Windows)
		if err != nil {
			return t, pay, err
		}
		if b.Service < 0 {
			return t, pay, fmt.Errorf("%s.breaks[%d]: service %g must not be below 0", where, i, b.Service)
		}
		rest := vrp.Break{Windows: windows, Duration: b.Service}
		if b.MaxLoad != nil {
			if err := v.dimension(fmt.Sprintf("%s.breaks[%d].max_load", where, i), b.MaxLoad); err != nil {
				return t, pay, err
			}
			rest.MaxLoad = v.padded(b.MaxLoad)
		}
		t.Breaks = append(t.Breaks, rest)
	}
	return t, pay, nil
}

// matrices are the ways between all places for vehicles that pay so.
func (v *VROOM) matrices(in *vroomInput, pay paid, at []vroomPlace) vrp.Profile {
	n := len(at)
	f := vrp.Profile{Name: pay.profile, Distance: make([]float64, n*n), Duration: make([]float64, n*n)}
	for i := range n {
		for j := range n {
			duration, distance := v.legs(pay.profile, pay.factor, at[i], at[j])
			f.Duration[i*n+j] = duration
			switch {
			case pay.costs:
				f.Distance[i*n+j] = in.Matrices[pay.profile].Costs[*at[i].Index][*at[j].Index]
			case pay.km == 0:
				f.Distance[i*n+j] = duration
			case pay.hour == 0:
				f.Distance[i*n+j] = distance
			default:
				f.Distance[i*n+j] = pay.hour/3600*duration + pay.km/1000*distance
			}
		}
	}
	if !pay.costs && pay.km == 0 {
		f.Duration = nil // it is the distance
	}
	return f
}

// start is what the vehicles' steps say.
func (v *VROOM) start() error {
	var s vrp.Solution
	any, used := false, map[int32]bool{}
	for kind, list := range v.byType {
		for _, i := range list {
			c := &v.vehicles[i]
			any = any || c.Steps != nil
			route, err := v.stepped(c.Steps, used, fmt.Sprintf("vehicles[%d]", i))
			if err != nil {
				return err
			}
			if len(route) > 0 {
				s.Routes, s.Types = append(s.Routes, route), append(s.Types, int32(kind))
			}
		}
	}
	if v.Plan && !any {
		return fmt.Errorf("options.c asks for the times of a plan, and no vehicle has steps")
	}
	if any {
		v.Start = &s
	}
	return nil
}

// stepped is the route of a vehicle's steps; used are the places of routes before it.
func (v *VROOM) stepped(steps []vroomStep, used map[int32]bool, where string) (route []int32, err error) {
	places := map[string]int32{}
	for i := range v.tasks {
		places[v.called(i)] = int32(v.Problem.Depots + i)
	}
	for k, step := range steps {
		at := fmt.Sprintf("%s.steps[%d]", where, k)
		if step.ServiceAt != nil || step.ServiceAfter != nil || step.ServiceBefore != nil {
			return nil, fmt.Errorf("%s: service_at, service_after and service_before are not honoured: give the task time_windows", at)
		}
		switch step.Type {
		case "start", "end", "break":
			continue
		}
		place, ok := places[fmt.Sprintf("%s %d", step.Type, step.ID)]
		switch {
		case !ok:
			return nil, fmt.Errorf("%s names %s %d, which does not exist", at, step.Type, step.ID)
		case used[place]:
			return nil, fmt.Errorf("%s names %s %d, which stands in an earlier step", at, step.Type, step.ID)
		}
		used[place] = true
		route = append(route, place)
	}
	return route, nil
}

// Span is [from, to], or [from] without an end.
type Span []float64

func spans(key string, list []Span) (out []vrp.Window, err error) {
	for i, s := range list {
		w := vrp.Always
		switch len(s) {
		case 1:
			w.From = s[0]
		case 2:
			w.From, w.To = s[0], s[1]
		default:
			return nil, fmt.Errorf("%s[%d] has %d numbers: [from, to], or [from] without an end", key, i, len(s))
		}
		if w.To < w.From {
			return nil, fmt.Errorf("%s[%d] closes at %g, before it opens at %g", key, i, w.To, w.From)
		}
		out = append(out, w)
	}
	return out, nil
}

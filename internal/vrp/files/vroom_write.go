package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"haul/internal/vrp"
)

// VROOM's output. Numbers are integers, as in VROOM; Haul adds reason to each of unassigned.

type vroomOutput struct {
	Code       int               `json:"code"`
	Summary    vroomSummary      `json:"summary"`
	Unassigned []vroomUnassigned `json:"unassigned"`
	Routes     []vroomRoute      `json:"routes"`
}

// vroomFigures are those of a route, and their sums of all.
type vroomFigures struct {
	Cost      int64       `json:"cost"`
	Delivery  []int64     `json:"delivery,omitempty"`
	Amount    []int64     `json:"amount,omitempty"`
	Pickup    []int64     `json:"pickup,omitempty"`
	Setup     int64       `json:"setup"`
	Service   int64       `json:"service"`
	Duration  int64       `json:"duration"`
	Waiting   int64       `json:"waiting_time"`
	Priority  int         `json:"priority"`
	Distance  *int64      `json:"distance,omitempty"`
	Violation []vroomRule `json:"violations"`
}

type vroomSummary struct {
	Routes     int `json:"routes"`
	Unassigned int `json:"unassigned"`
	vroomFigures
	Times vroomTimes `json:"computing_times"`
}

type vroomTimes struct {
	Loading int64 `json:"loading"`
	Solving int64 `json:"solving"`
	Routing int64 `json:"routing"`
}

type vroomRule struct {
	Cause    string `json:"cause"`
	Duration *int64 `json:"duration,omitempty"`
}

type vroomUnassigned struct {
	vroomPlace
	ID          int64  `json:"id"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

type vroomRoute struct {
	Vehicle int64 `json:"vehicle"`
	vroomFigures
	Steps       []vroomStop `json:"steps"`
	Description string      `json:"description,omitempty"`
}

type vroomStop struct {
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	vroomPlace
	ID         *int64      `json:"id,omitempty"`
	Setup      int64       `json:"setup"`
	Service    int64       `json:"service"`
	Waiting    int64       `json:"waiting_time"`
	Job        *int64      `json:"job,omitempty"` // of older versions: id
	Load       []int64     `json:"load,omitempty"`
	Arrival    int64       `json:"arrival"`
	Duration   int64       `json:"duration"`
	Violations []vroomRule `json:"violations"`
	Distance   *int64      `json:"distance,omitempty"`
}

// VROOMError is VROOM's answer where it has no routes. Its codes: 1 is the program's fault, 2 the
// input's.
func VROOMError(code int, text string) []byte {
	out, _ := json.Marshal(struct { // a string and a number
		Code  int    `json:"code"`
		Error string `json:"error"`
	}{code, text})
	return append(out, '\n')
}

// whole is a number as VROOM prints it.
func whole(x float64) int64 { return int64(math.Round(x)) }

// Answer is a solution in VROOM's output form. broken are what a plan violates; a solution that was
// solved for violates nothing. loading and solving are in seconds.
func (v *VROOM) Answer(s vrp.Solution, why map[int32]string, broken []*vrp.Violation, loading, solving float64) ([]byte, error) {
	e, err := vrp.Evaluate(v.Problem, s)
	if err != nil {
		return nil, err
	}
	out := vroomOutput{Unassigned: []vroomUnassigned{}, Routes: []vroomRoute{}}
	sum := &out.Summary
	sum.vroomFigures = v.figures()
	taken := make([]int, len(v.byType))
	for k, r := range e.Routes {
		// Vehicles of one type are alike: each route takes the next one.
		number := v.byType[r.Type][min(taken[r.Type], len(v.byType[r.Type])-1)]
		taken[r.Type]++
		route := v.route(&v.vehicles[number], &r)
		for _, b := range broken {
			if b.Route == e.Index[k]+1 {
				route.mark(v, b)
			}
		}
		sum.add(&route.vroomFigures)
		out.Routes = append(out.Routes, route)
	}
	for _, place := range e.Unserved {
		t := &v.tasks[int(place)-v.Problem.Depots]
		out.Unassigned = append(out.Unassigned, vroomUnassigned{vroomPlace: t.half.vroomPlace, ID: t.half.ID, Type: t.kind, Description: t.half.Description, Reason: why[place]})
	}
	sum.Routes, sum.Unassigned = len(out.Routes), len(out.Unassigned)
	sum.Times = vroomTimes{Loading: whole(1000 * loading), Solving: whole(1000 * solving)}
	text, err := json.Marshal(out)
	return append(text, '\n'), err
}

// Measure puts the distances of ways into a plan, where they are known: a problem's distance is
// what its vehicles pay for, which in VROOM's words is time where nothing else is said.
func (v *VROOM) Measure(plan *Plan) {
	if !v.measured {
		return
	}
	plan.Distance = 0
	for i := range plan.Routes {
		r := &plan.Routes[i]
		c := &v.vehicles[v.byType[r.Type][0]]
		r.Distance = 0
		for k := range r.Stops {
			s := &r.Stops[k]
			if s.Distance = 0; k > 0 {
				_, s.Distance = v.legs(c.profile(), c.factor(), v.place(r.Stops[k-1].Place), v.place(s.Place))
			}
			r.Distance += s.Distance
		}
		plan.Distance += r.Distance
	}
}

// LooksAnswer tells VROOM's output: its routes have steps, which Haul's own have not.
func LooksAnswer(text []byte) bool {
	var head struct {
		Routes []struct {
			Steps json.RawMessage `json:"steps"`
		} `json:"routes"`
		Unassigned json.RawMessage `json:"unassigned"`
	}
	err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &head)
	return err == nil && head.Routes != nil && head.Unassigned != nil
}

// ReadAnswer reads the routes of VROOM's output for this input. Its cost is left out: it is the sum
// of whole numbers.
func (v *VROOM) ReadAnswer(text []byte, name string) (vrp.Solution, error) {
	var all struct {
		Routes []struct {
			Vehicle int64       `json:"vehicle"`
			Steps   []vroomStep `json:"steps"`
		} `json:"routes"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &all); err != nil {
		return vrp.Solution{}, fmt.Errorf("%s is not VROOM's output: %s", name, mistaken(err))
	}
	kinds := map[int64]int{}
	for kind, list := range v.byType {
		for _, i := range list {
			kinds[v.vehicles[i].ID] = kind
		}
	}
	s, used := vrp.Solution{Routes: [][]int32{}}, map[int32]bool{}
	for i, r := range all.Routes {
		kind, ok := kinds[r.Vehicle]
		if !ok {
			return vrp.Solution{}, fmt.Errorf("%s: routes[%d] is of vehicle %d, which does not exist", name, i, r.Vehicle)
		}
		route, err := v.stepped(r.Steps, used, fmt.Sprintf("%s: routes[%d]", name, i))
		if err != nil {
			return vrp.Solution{}, err
		}
		if len(route) > 0 {
			s.Routes, s.Types = append(s.Routes, route), append(s.Types, int32(kind))
		}
	}
	return s, nil
}

// figures are zeros in the problem's dimensions.
func (v *VROOM) figures() vroomFigures {
	f := vroomFigures{Violation: []vroomRule{}}
	if v.amounts > 0 {
		f.Delivery, f.Amount, f.Pickup = make([]int64, v.amounts), make([]int64, v.amounts), make([]int64, v.amounts)
	}
	if v.measured {
		f.Distance = new(int64)
	}
	return f
}

func (f *vroomFigures) add(g *vroomFigures) {
	f.Cost += g.Cost
	for d := range f.Delivery {
		f.Delivery[d] += g.Delivery[d]
		f.Amount[d] += g.Amount[d]
		f.Pickup[d] += g.Pickup[d]
	}
	f.Setup, f.Service, f.Duration, f.Waiting, f.Priority = f.Setup+g.Setup, f.Service+g.Service, f.Duration+g.Duration, f.Waiting+g.Waiting, f.Priority+g.Priority
	if f.Distance != nil {
		*f.Distance += *g.Distance
	}
	seen := map[string]bool{}
	for _, r := range f.Violation {
		seen[r.Cause] = true
	}
	for _, r := range g.Violation {
		if !seen[r.Cause] {
			f.Violation = append(f.Violation, r)
		}
	}
}

// route is one vehicle's.
func (v *VROOM) route(c *vroomVehicle, r *vrp.RoutePlan) vroomRoute {
	p, t := v.Problem, &v.Problem.Fleet[r.Type]
	out := vroomRoute{Vehicle: c.ID, Description: c.Description, vroomFigures: v.figures()}
	out.Cost = whole(r.Cost)
	duration, distance, rest := 0.0, 0.0, 0
	var before *vroomPlace
	for i := range r.Stops {
		s := &r.Stops[i]
		at := v.place(s.Place)
		if before != nil {
			x, y := v.legs(c.profile(), c.factor(), *before, at)
			duration, distance = duration+x, distance+y
		}
		before = &at
		step := vroomStop{Type: kindOf(p, t, r.Stops, i), Arrival: whole(s.Arrival), Waiting: whole(s.Wait), Duration: whole(duration), Violations: []vroomRule{}}
		if v.measured {
			x := whole(distance)
			step.Distance = &x
		}
		if v.amounts > 0 {
			step.Load = s.Load
			if step.Type == "end" && i > 0 { // VROOM unloads nothing there
				step.Load = r.Stops[i-1].Load
			}
		}
		spent := s.Depart - s.Begin
		switch step.Type {
		case "break":
			if rest < len(c.Breaks) { // they are taken in their order
				b := &c.Breaks[rest]
				step.ID, step.Description, step.Service = &b.ID, b.Description, whole(b.Service)
				rest++
			}
		case "customer":
			task := &v.tasks[int(s.Place)-p.Depots]
			step.vroomPlace, step.Type, step.ID, step.Job, step.Description = at, task.kind, &task.half.ID, &task.half.ID, task.half.Description
			step.Service = whole(task.half.Service)
			step.Setup = whole(spent) - step.Service
			out.Priority += task.priority
			for d := range task.delivery {
				out.Delivery[d] += int64(task.delivery[d])
				out.Amount[d] = out.Delivery[d]
			}
			for d := range task.pickup {
				out.Pickup[d] += int64(task.pickup[d])
			}
		default:
			step.vroomPlace = at
		}
		out.Setup, out.Service, out.Waiting = out.Setup+step.Setup, out.Service+step.Service, out.Waiting+step.Waiting
		out.Steps = append(out.Steps, step)
	}
	out.Duration = whole(duration)
	if out.Distance != nil {
		*out.Distance = whole(distance)
	}
	if len(out.Steps) > 0 {
		v.close(&out, t, r)
	}
	return out
}

// close gives a route that has no depot at an end the step that VROOM has there all the same, at
// the task beside it.
func (v *VROOM) close(out *vroomRoute, t *vrp.VehicleType, r *vrp.RoutePlan) {
	nothing := func() *int64 {
		if !v.measured {
			return nil
		}
		return new(int64)
	}
	if t.Start == vrp.None {
		first := r.Stops[0]
		start := vroomStop{Type: "start", vroomPlace: v.place(first.Place), Arrival: whole(first.Arrival), Distance: nothing(), Violations: []vroomRule{}}
		if v.amounts > 0 {
			start.Load = slices.Clone(first.Load)
			if number := int(first.Place) - v.Problem.Depots; number >= 0 && !first.Rest {
				task := &v.tasks[number]
				for d := range task.delivery {
					start.Load[d] += int64(task.delivery[d])
				}
				for d := range task.pickup {
					start.Load[d] -= int64(task.pickup[d])
				}
			}
		}
		out.Steps = slices.Insert(out.Steps, 0, start)
	}
	if t.End == vrp.None {
		last := r.Stops[len(r.Stops)-1]
		end := vroomStop{Type: "end", vroomPlace: v.place(last.Place), Arrival: whole(last.Depart), Duration: out.Duration, Distance: nothing(), Violations: []vroomRule{}}
		if v.amounts > 0 {
			end.Load = last.Load
		}
		if out.Distance != nil {
			*end.Distance = *out.Distance
		}
		out.Steps = append(out.Steps, end)
	}
}

// place is where a place of the problem is, in the input's words.
func (v *VROOM) place(number int32) vroomPlace {
	if int(number) < v.Problem.Depots {
		return v.places[number]
	}
	return v.tasks[int(number)-v.Problem.Depots].half.vroomPlace
}

// causes are VROOM's words for broken rules.
var causes = map[vrp.Rule]string{
	vrp.WithinWindow: "delay", vrp.WithinShift: "delay", vrp.WithinCapacity: "load", vrp.WithinStops: "max_tasks", vrp.Skilled: "skills",
	vrp.PairOrder: "precedence", vrp.BreakTaken: "missing_break", vrp.WithinDistance: "max_travel_time",
}

// mark puts a broken rule where it is broken.
func (r *vroomRoute) mark(v *VROOM, b *vrp.Violation) {
	cause, ok := causes[b.Rule]
	if !ok {
		cause = "other"
	}
	rule := vroomRule{Cause: cause}
	if cause == "delay" {
		by := whole(b.By)
		rule.Duration = &by
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if b.Node >= 0 && int(b.Node) >= v.Problem.Depots {
			if task := &v.tasks[int(b.Node)-v.Problem.Depots]; s.ID != nil && s.Type == task.kind && *s.ID == task.half.ID {
				s.Violations = append(s.Violations, rule)
			}
		}
	}
	for i := range r.Violation {
		if r.Violation[i].Cause == cause {
			if rule.Duration != nil {
				*r.Violation[i].Duration += *rule.Duration
			}
			return
		}
	}
	own := rule
	if rule.Duration != nil {
		d := *rule.Duration
		own.Duration = &d
	}
	r.Violation = append(r.Violation, own)
}

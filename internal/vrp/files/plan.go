package files

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// A plan is a solution with its times, for every output. What a reader could break: all of its
// numbers come from vrp.Evaluate, and nothing is computed twice.

// Plan is what each vehicle does, and who is not served.
type Plan struct {
	Distance float64    `json:"distance"`
	Duration float64    `json:"duration"`
	Routes   []Route    `json:"routes"`
	Unserved []Unserved `json:"unserved"`
}

// Route is one vehicle's.
type Route struct {
	Vehicle   string    `json:"vehicle"`        // the type's name, else its number
	Type      int       `json:"type"`           // index into fleet
	Customers int       `json:"customers"`      // visited
	Load      []float64 `json:"load,omitempty"` // per dimension: the most on board
	Distance  float64   `json:"distance"`
	Duration  float64   `json:"duration"` // from leaving to the end, waiting included
	Wait      float64   `json:"wait"`
	Late      float64   `json:"late,omitempty"` // past windows that have a price
	Start     float64   `json:"start"`
	End       float64   `json:"end"`
	Cost      float64   `json:"cost"`
	Stops     []Stop    `json:"stops"`
}

// Stop is a visit; a route begins and ends with its depots, where it has them.
type Stop struct {
	Kind     string    `json:"kind" api:"enum=start|customer|reload|break|end"`
	Place    int32     `json:"place"`
	ID       string    `json:"id"`
	Name     string    `json:"name,omitempty"`
	Arrival  float64   `json:"arrival"`
	Wait     float64   `json:"wait"`
	Begin    float64   `json:"begin"`
	Service  float64   `json:"service"` // setup included
	Depart   float64   `json:"depart"`
	Distance float64   `json:"distance"`        // from the stop before
	Slack    *float64  `json:"slack,omitempty"` // how much later it could begin; none: nothing limits it
	Late     float64   `json:"late,omitempty"`
	Load     []float64 `json:"load,omitempty"` // on board behind it, per dimension
	At       []float64 `json:"at,omitempty"`   // its coordinates, where places have them
}

// Unserved is a customer on no route.
type Unserved struct {
	Customer int32  `json:"customer"`
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	Reason   string `json:"reason"`

	At []float64 `json:"at,omitempty"` // its coordinates, where places have them
}

// Timed says whether a problem's routes have times that a user wants to see.
func Timed(p *vrp.Problem) bool { return p.Limited() != nil || p.Service != nil || p.MaxDuration > 0 }

// NewPlan evaluates a solution. why has the reasons of those who are not served; nil: none is told.
func NewPlan(p *vrp.Problem, s vrp.Solution, why map[int32]string) (*Plan, error) {
	e, err := vrp.Evaluate(p, s)
	if err != nil {
		return nil, err
	}
	types := p.Types()
	plan := &Plan{Distance: e.Distance, Duration: e.Duration, Routes: []Route{}, Unserved: []Unserved{}}
	for _, r := range e.Routes {
		t := &types[r.Type]
		out := Route{Vehicle: t.Name, Type: r.Type, Customers: r.Customers, Load: amountsOf(p, r.Load), Distance: r.Distance, Duration: r.Duration,
			Wait: r.Wait, Late: r.Late, Start: r.Start, End: r.End, Cost: r.Cost}
		if out.Vehicle == "" {
			out.Vehicle = strconv.Itoa(r.Type + 1)
		}
		for i, stop := range r.Stops {
			out.Stops = append(out.Stops, Stop{Kind: kindOf(p, t, r.Stops, i), Place: stop.Place, ID: p.ID(int(stop.Place)), Name: p.Called(int(stop.Place)), Arrival: stop.Arrival, Wait: stop.Wait,
				Begin: stop.Begin, Service: stop.Depart - stop.Begin, Depart: stop.Depart, Distance: stop.Distance, Slack: finite(stop.Slack), Late: stop.Late, Load: amountsOf(p, stop.Load), At: at(p, int(stop.Place))})
		}
		plan.Routes = append(plan.Routes, out)
	}
	for _, v := range e.Unserved {
		plan.Unserved = append(plan.Unserved, Unserved{Customer: v, ID: p.ID(int(v)), Name: p.Called(int(v)), Reason: why[v], At: at(p, int(v))})
	}
	return plan, nil
}

// finite is a limit, or nothing where there is none.
func finite(x float64) *float64 {
	if math.IsInf(x, 1) {
		return nil
	}
	return &x
}

// at is where a place is; nil: places have no coordinates, or none that were given.
func at(p *vrp.Problem, place int) []float64 {
	if place < 0 || place >= len(p.X) {
		return nil
	}
	return []float64{p.X[place], p.Y[place]}
}

// amountsOf are amounts as the problem's file counts them.
func amountsOf(p *vrp.Problem, list []int64) []float64 {
	out := make([]float64, len(list))
	for d, a := range list {
		out[d] = p.Amount(d, a)
	}
	return out
}

// Clock is a point in time as people read it: 08:30 where times are those of a day, with seconds
// where it has them; else a number.
func Clock(p *vrp.Problem, x float64) string {
	if p.Clock == 0 {
		return number(clean(x))
	}
	return p.TimeText(x)
}

// kindOf says what a vehicle does at a stop.
func kindOf(p *vrp.Problem, t *vrp.VehicleType, stops []vrp.Stop, i int) string {
	switch depot := int(stops[i].Place) < p.DepotCount(); {
	case stops[i].Rest:
		return "break"
	case !depot:
		return "customer"
	case t.Start != vrp.None && firstOf(stops) == i:
		return "start"
	case t.End != vrp.None && lastOf(stops) == i:
		return "end"
	}
	return "reload"
}

// firstOf and lastOf are the ends of a route but for breaks before and behind them.
func firstOf(stops []vrp.Stop) int {
	for i := range stops {
		if !stops[i].Rest {
			return i
		}
	}
	return -1
}

func lastOf(stops []vrp.Stop) int {
	for i := len(stops) - 1; i >= 0; i-- {
		if !stops[i].Rest {
			return i
		}
	}
	return -1
}

// Solution is the JSON of routes that haul solve --out and Python write: what --start, --check and
// the server read, and the plan for people and programs.
type Solution struct {
	Haul   int       `json:"haul"`
	Name   string    `json:"name,omitempty"`
	Cost   float64   `json:"cost"`
	Routes [][]int32 `json:"routes"`
	Types  []int32   `json:"types,omitempty"`
	Plan   *Plan     `json:"plan"`

	Problem json.RawMessage `json:"problem"` // as it was solved, in Haul's own JSON
}

// WriteSolutionJSON writes routes with their plan and their problem, which ReadProblem reads.
func WriteSolutionJSON(w io.Writer, p *vrp.Problem, s vrp.Solution, plan *Plan) error {
	problem, err := AppendProblem([]byte{'{'}, p)
	if err != nil {
		return err
	}
	text, err := json.Marshal(Solution{Haul: Version, Name: p.Name, Cost: p.Cost(s), Routes: s.Routes, Types: s.Types, Plan: plan, Problem: append(problem, '}')})
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// WritePlanCSV writes a row per stop, the ends of routes included, and a row for everybody who is
// not served, whose route is empty.
func WritePlanCSV(w io.Writer, p *vrp.Problem, plan *Plan) error {
	out := csv.NewWriter(w)
	_ = out.WriteAll(planRows(p, plan)) // Error tells
	return out.Error()
}

func planRows(p *vrp.Problem, plan *Plan) (rows [][]string) {
	head := []string{"route", "vehicle", "type", "stop", "kind", "customer", "id"}
	if p.Names != nil {
		head = append(head, "name")
	}
	head = append(head, []string{"arrival", "wait", "begin", "service", "depart", "slack", "late", "distance"}...)
	for d := range 1 + len(p.Dimensions) {
		head = append(head, "load"+suffix(p, d))
	}
	xy := p.X != nil
	switch {
	case xy && p.Metric == vrp.GreatCircle:
		head = append(head, "lon", "lat")
	case xy:
		head = append(head, "x", "y")
	}
	head = append(head, "reason")
	rows = append(rows, head)
	num := func(x float64) string { return strconv.FormatFloat(clean(x), 'f', -1, 64) }
	at := func(row []string, v int32) []string {
		if xy {
			row = append(row, num(p.X[v]), num(p.Y[v]))
		}
		return row
	}
	for i, r := range plan.Routes {
		for k, s := range r.Stops {
			slack := ""
			if s.Slack != nil {
				slack = num(*s.Slack)
			}
			row := []string{strconv.Itoa(i + 1), r.Vehicle, strconv.Itoa(r.Type), strconv.Itoa(k), s.Kind, strconv.Itoa(int(s.Place)), s.ID}
			if p.Names != nil {
				row = append(row, s.Name)
			}
			row = append(row, Clock(p, s.Arrival), num(s.Wait), Clock(p, s.Begin), num(s.Service), Clock(p, s.Depart), slack, num(s.Late), num(s.Distance))
			for d := range 1 + len(p.Dimensions) {
				row = append(row, num(s.Load[d]))
			}
			rows = append(rows, append(at(row, s.Place), ""))
		}
	}
	for _, u := range plan.Unserved {
		row := []string{"", "", "", "", "unserved", strconv.Itoa(int(u.Customer)), u.ID}
		if p.Names != nil {
			row = append(row, u.Name)
		}
		row = append(row, make([]string, 8+1+len(p.Dimensions))...)
		rows = append(rows, append(at(row, u.Customer), u.Reason))
	}
	return rows
}

// WritePlanXLSX writes a plan as a spreadsheet: a sheet of stops, one of routes, and one of who is
// not served where anybody is.
func WritePlanXLSX(w io.Writer, p *vrp.Problem, plan *Plan) error {
	num := func(x float64) string { return strconv.FormatFloat(clean(x), 'f', -1, 64) }
	all := []outSheet{{"stops", planRows(p, plan)}}
	routes := [][]string{{"route", "vehicle", "customers"}}
	for d := range 1 + len(p.Dimensions) {
		routes[0] = append(routes[0], "load"+suffix(p, d))
	}
	routes[0] = append(routes[0], "distance", "duration", "wait", "late", "start", "end", "cost")
	for i, r := range plan.Routes {
		row := []string{strconv.Itoa(i + 1), r.Vehicle, strconv.Itoa(r.Customers)}
		for _, l := range r.Load {
			row = append(row, num(l))
		}
		routes = append(routes, append(row, num(r.Distance), num(r.Duration), num(r.Wait), num(r.Late), Clock(p, r.Start), Clock(p, r.End), num(r.Cost)))
	}
	all = append(all, outSheet{"routes", routes})
	if len(plan.Unserved) > 0 {
		rows := [][]string{{"id", "name", "reason"}}
		for _, u := range plan.Unserved {
			rows = append(rows, []string{u.ID, u.Name, u.Reason})
		}
		all = append(all, outSheet{"unserved", rows})
	}
	return writeSheets(w, all)
}

func suffix(p *vrp.Problem, d int) string {
	switch {
	case d == 0:
		return ""
	case p.Dimensions[d-1].Name == "":
		return "_" + strconv.Itoa(d+1)
	}
	return "_" + strings.Join(strings.Fields(p.Dimensions[d-1].Name), "_")
}

// clean takes the noise of a sum's last bits off a number that is printed.
func clean(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64)
	if err != nil || math.IsNaN(y) {
		return x
	}
	return y
}

// visited are a route's places in order, its ends left out.
func visited(r Route) []int32 {
	out := []int32{}
	for _, s := range r.Stops {
		if s.Kind == "customer" || s.Kind == "reload" {
			out = append(out, s.Place)
		}
	}
	return out
}

// geometry and feature are GeoJSON's (RFC 7946).
type geometry struct {
	Type        string `json:"type"`
	Coordinates any    `json:"coordinates"`
}

type feature struct {
	Type       string         `json:"type"`
	Geometry   geometry       `json:"geometry"`
	Properties map[string]any `json:"properties"`
}

// WritePlanGeoJSON writes a line per route with its figures, and a point per depot, stop and
// customer who is not served.
func WritePlanGeoJSON(w io.Writer, p *vrp.Problem, plan *Plan) error {
	if p.X == nil {
		return fmt.Errorf("GeoJSON needs coordinates, and the problem gives distances alone")
	}
	point := func(v int32) []float64 { return []float64{p.X[v], p.Y[v]} }
	var all []feature
	named := func(about map[string]any, name string) map[string]any {
		if name != "" {
			about["name"] = name
		}
		return about
	}
	for v := range p.DepotCount() {
		all = append(all, feature{"Feature", geometry{"Point", point(int32(v))}, named(map[string]any{"kind": "depot", "id": p.ID(v)}, p.Called(v))})
	}
	for i, r := range plan.Routes {
		var line [][]float64
		for k, s := range r.Stops {
			line = append(line, point(s.Place))
			if s.Kind == "customer" {
				stop := map[string]any{"kind": "stop", "id": s.ID, "route": i + 1, "stop": k,
					"arrival": clean(s.Arrival), "wait": clean(s.Wait), "begin": clean(s.Begin), "service": clean(s.Service), "depart": clean(s.Depart), "load": s.Load}
				if s.Slack != nil {
					stop["slack"] = clean(*s.Slack)
				}
				if s.Late > 0 {
					stop["late"] = clean(s.Late)
				}
				if p.Clock > 0 {
					stop["time"] = Clock(p, s.Begin)
				}
				all = append(all, feature{"Feature", geometry{"Point", point(s.Place)}, named(stop, s.Name)})
			}
		}
		shape := geometry{"LineString", line}
		if len(line) < 2 {
			shape = geometry{"Point", line[0]}
		} else if p.Metric == vrp.GreatCircle {
			shape = lineOf(line)
		}
		all = append(all, feature{"Feature", shape, map[string]any{"kind": "route", "route": i + 1, "vehicle": r.Vehicle, "type": r.Type, "customers": visited(r), "load": r.Load,
			"distance": clean(r.Distance), "duration": clean(r.Duration), "start": clean(r.Start), "end": clean(r.End), "cost": clean(r.Cost)}})
	}
	for _, u := range plan.Unserved {
		all = append(all, feature{"Feature", geometry{"Point", point(u.Customer)}, named(map[string]any{"kind": "unserved", "id": u.ID, "reason": u.Reason}, u.Name)})
	}
	text, err := json.Marshal(map[string]any{"type": "FeatureCollection", "features": all})
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

package search

import (
	"context"
	"fmt"
	"math"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// Problems that are plain although they describe a fleet: one type of vehicle, in any number, with
// a capacity and a limit of length or duration. The search for plain problems is several times as
// fast. The limit of a field of VehicleType that is not looked at here would not be kept.

// plainOf is the same problem without a fleet; nil if it needs one, or where somebody fits on no
// route, whom only the general path lists.
func plainOf(p *vrp.Problem) *vrp.Problem {
	if len(p.Fleet) != 1 || p.Only("a fleet of its own") != nil || p.MaxDuration > 0 || p.Vehicles > 0 || p.Open {
		return nil
	}
	t := &p.Fleet[0]
	if t.Count != 0 || len(t.Capacity) != 1 || t.Start != 0 || t.End != 0 && t.End != vrp.None || t.Shift != vrp.Always || !math.IsInf(t.LatestStart, 1) ||
		t.MaxStops != 0 || t.FixedCost != 0 || t.DistanceCost != 1 || t.DurationCost != 0 || t.Profile != 0 || t.Allowed != nil ||
		t.Reloads != nil || t.Breaks != nil || t.InitialLoad != nil {
		return nil
	}
	q := *p
	q.Fleet, q.Capacity, q.Open = nil, t.Capacity[0], t.End == vrp.None
	limit := t.MaxDuration
	if !math.IsInf(t.MaxDistance, 1) {
		if !math.IsInf(t.MaxDuration, 1) {
			return nil
		}
		limit, q.Service = t.MaxDistance, nil
	}
	if !math.IsInf(limit, 1) {
		q.MaxDuration = limit
	} else {
		q.Service = nil
	}
	if q.Capacity <= 0 || q.MaxDuration < 0 || q.Check() != nil {
		return nil
	}
	for v := 1; v < len(q.Demand); v++ {
		way := q.Dist(0, v)
		if !q.Open {
			way += q.Dist(v, 0)
		}
		if q.Service != nil {
			way += q.Service[v]
		}
		if q.Demand[v] > q.Capacity || q.MaxDuration > 0 && way > q.MaxDuration*(1-1e-6) {
			return nil
		}
	}
	return &q
}

// opensFlat reports whether a problem of open routes is searched better by the general path, which
// keeps so small a one in flat routes: overload has a price there, and covers a bound twice as
// near.
func opensFlat(p *vrp.Problem) bool {
	if len(p.Demand)-1 > model.FullMost || p.Metric == vrp.Explicit || p.MaxDuration > 0 || p.Vehicles > 0 {
		return false
	}
	if p.Limited() == nil {
		return p.Open
	}
	return len(p.Fleet) == 1 && p.Fleet[0].End == vrp.None && plainOf(p) != nil && math.IsInf(p.Fleet[0].MaxDuration, 1)
}

// solvePlain solves a problem with a fleet by its plain one.
func solvePlain(ctx context.Context, p, plain *vrp.Problem, o Options) (*Result, error) {
	typed := func(s vrp.Solution) vrp.Solution {
		return vrp.Solution{Routes: s.Routes, Types: make([]int32, len(s.Routes))}
	}
	if tell := o.Progress; tell != nil {
		o.Progress = func(at Progress) {
			at.Best = typed(at.Best)
			tell(at)
		}
	}
	r, err := Solve(ctx, plain, o)
	if err != nil {
		return nil, err
	}
	r.Solution = typed(r.Solution)
	if bad := broken(p, r.Solution); bad != nil {
		return nil, fmt.Errorf("search: the routes found are invalid: %w", bad)
	}
	return r, nil
}

// Package link lets package policy reach what a vrp.Problem holds without putting an internal type
// into the API of package vrp, which sets both functions.
package link

import engine "haul/internal/vrp"

var (
	// Inner is the problem that a *vrp.Problem holds.
	Inner func(problem any) *engine.Problem
	// Outward is a *vrp.Solution of routes for a *vrp.Problem, once the referee has seen them.
	Outward func(problem any, s engine.Solution) (any, error)
)

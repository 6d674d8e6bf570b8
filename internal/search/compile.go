package search

import (
	"context"

	"haul/internal/search/model"
	"haul/internal/search/neighbour"
	"haul/internal/vrp"
)

// compileNear compiles a problem with its neighbour lists. If ctx ends, or its deadline is too
// soon, the lists are shorter or empty.
func compileNear(ctx context.Context, p *vrp.Problem) *model.Compiled {
	m := model.Compile(p)
	neighbour.List(ctx, m)
	m.Scale()
	return m
}

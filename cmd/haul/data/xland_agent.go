package data

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/recipe"
	"haul/internal/world/history"
	"haul/internal/world/xland"
)

// What a reader could break: who makes a history is a function of its number, and what agents
// draw is a function of the seed, so the file does not depend on the number of cores.

// xlandTogether is how many histories at most are lived at a time where agents live some of them.
const xlandTogether = 1024

// guided lets agents live through every second history, and searchers through the others. Beside
// each agent a searcher that sees the same says what it would do.
type guided struct {
	live    *recipe.Live // half as many as histories at a time
	world   xland.World
	rules   xland.Searching
	seed    uint64
	workers int
}

// withAgents has agents of f.agent live through half of the histories. Whoever calls it closes.
func (a *app) withAgents(cmd *cobra.Command, f *xlandFlags, o *history.XLandOptions) (closing func() error, err error) {
	path, ck, err := cli.CheckpointOf(f.agent)
	if err != nil {
		return nil, err
	}
	if r := ck.Settings.Recipe(); r != config.RecipeAD {
		return nil, fmt.Errorf("%s holds a model of %s: only in-context agents, of %s, live through tasks", path, r, config.RecipeAD)
	}
	r, err := recipe.Find(config.RecipeAD)
	if err != nil {
		return nil, err
	}
	on := cli.DeviceFlags{Name: f.device, Precision: f.precision, Workers: o.Workers}
	dev, err := a.OpenFor(cmd.Context(), &on, r, ck.Settings)
	if err != nil {
		return nil, err
	}
	as, together := 1.0, min(xlandTogether, len(o.Learn)*o.Histories+len(o.Held))
	live, err := recipe.NewLive(dev, path, recipe.LiveOptions{Agents: max(1, together/2), Temperature: &as, Seed: &f.seed})
	if err != nil {
		return nil, cli.FirstOf(err, dev.Close())
	}
	closing = func() error { return cli.FirstOf(live.Close(), dev.Close()) }
	if w, ok := live.World.(xland.World); !ok || w.View != o.World.View || w.Layout != o.World.Layout || w.Size != o.World.Size || w.Horizon != o.World.Horizon {
		return nil, cli.FirstOf(cli.Usagef("--agent: the agents of %s were trained in %v, and the tasks are in %v", path, live.World, o.World), closing())
	}
	g := &guided{live: live, world: o.World, rules: *o.Search, seed: o.Seed, workers: o.Workers}
	o.Lives, o.Together = g.lives, together&^1
	return closing, nil
}

// lives is a history.XLandOptions.Lives.
func (g *guided) lives(ctx context.Context, dst [][]xland.Step, ids []xland.ID, first uint64) error {
	var tasks []*xland.Guided
	var places []int
	for i, id := range ids {
		if (first+uint64(i))%2 == 1 {
			tasks, places = append(tasks, g.world.Guide(dst[i], id, g.seed, first+uint64(i))), append(places, i)
		}
	}
	g.each(len(ids), func(i int) {
		if n := first + uint64(i); n%2 == 0 {
			dst[i] = g.world.Search(dst[i], ids[i], g.rules, g.seed, n)
		}
	})
	if err := g.play(ctx, tasks); err != nil {
		return err
	}
	for k, i := range places {
		dst[i] = tasks[k].Steps()
	}
	return nil
}

// play lets agents act until every life is long enough, with its last episode. Agents that have no
// task, and those whose life is over, are told again what the first one sees.
func (g *guided) play(ctx context.Context, tasks []*xland.Guided) error {
	n, fields := g.live.Agents(), g.world.View*g.world.View
	observed, actions, rewards, forget := make([][]float64, n), make([]int, n), make([]float64, n), make([]bool, n)
	for i := range observed {
		observed[i], forget[i] = make([]float64, fields), true
	}
	over := make([]bool, len(tasks))
	for left := len(tasks); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.each(len(tasks), func(i int) {
			if !over[i] {
				tasks[i].Observe(observed[i])
			}
		})
		if err := g.live.Act(actions, observed, rewards, forget); err != nil {
			return err
		}
		clear(forget)
		g.each(len(tasks), func(i int) {
			if over[i] {
				return
			}
			var ends bool
			rewards[i], ends = tasks[i].Take(actions[i])
			over[i] = ends && len(tasks[i].Steps()) >= g.rules.Steps
		})
		left = 0
		for _, done := range over {
			if !done {
				left++
			}
		}
	}
	return nil
}

// each calls do with 0 to n-1, on all cores.
func (g *guided) each(n int, do func(i int)) {
	var wait sync.WaitGroup
	for w := range g.workers {
		wait.Go(func() {
			for i := w; i < n; i += g.workers {
				do(i)
			}
		})
	}
	wait.Wait()
}

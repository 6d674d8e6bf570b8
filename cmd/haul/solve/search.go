package solve

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"haul/cmd/haul/cli"
	"haul/internal/draw"
	"haul/internal/report"
	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
)

// searchFlags are the flags of the search: how long, from where, how far.
type searchFlags struct {
	time       time.Duration
	iterations int
	target     float64
	start      string
	fix        string
	curve      string
}

// searchFlagNames are the flags that ask for the search.
var searchFlagNames = []string{"time", "iterations", "target", "start", "fix", "curve"}

// searchTime is what a search gets when the command line names no budget.
const searchTime = time.Second

// outcome is what a method made of a file.
type outcome struct {
	*solve.Result
	trace  *draw.Curve      // cost over time; nil: it was not searched
	broken []*vrp.Violation // of a plan that was not solved for
}

// budget is the wall time of the whole solve, where no budget of iterations is named.
func (f *solveFlags) budget() time.Duration {
	if f.problem.VROOM != nil && f.problem.VROOM.Seconds > 0 && !f.timeGiven {
		return time.Duration(f.problem.VROOM.Seconds * float64(time.Second))
	}
	return f.search.time
}

// searchOptions are the budget and the seed of the search. What reading the file took is part of
// --time. A VROOM input may say how long, and on how many cores, where no flag does.
func (f *solveFlags) searchOptions() search.Options {
	o := search.Options{Time: f.budget(), Iterations: f.search.iterations, Workers: f.workers, Seed: f.seed, Target: f.search.target}
	if v := f.problem.VROOM; v != nil {
		if v.Threads > 0 && !f.workersGiven {
			o.Workers = min(v.Threads, f.workers)
		}
	}
	if o.Iterations > 0 {
		o.Time = 0
		return o
	}
	o.Time = max(o.Time-time.Since(f.begun), o.Time/10, time.Nanosecond)
	return o
}

// parseFix reads --fix, "2,3:4" or "all": which routes of the start stay as they are, or how many
// of their first stops. Routes are counted from 1 as the start lists them, empty ones left out.
func parseFix(text string, s *vrp.Solution) ([]int32, error) {
	fixed := make([]int32, len(s.Routes))
	for word := range strings.SplitSeq(text, ",") {
		route, stops, part := strings.Cut(strings.TrimSpace(word), ":")
		n := -1
		if part {
			var err error
			if n, err = strconv.Atoi(stops); err != nil || n < 1 {
				return nil, cli.Usagef("--fix %s: %q is no number of stops: write 2:4 for the first four of route 2", text, stops)
			}
		}
		if route == "all" {
			for i, r := range s.Routes {
				fixed[i] = int32(min(n, len(r)))
			}
			continue
		}
		k, err := strconv.Atoi(route)
		if err != nil {
			return nil, cli.Usagef("--fix %s: %q is no route: write 2 for route 2, 2:4 for its first four stops, all for every route", text, word)
		}
		if k < 1 || k > len(s.Routes) {
			return nil, fmt.Errorf("--fix %s: there is no route %d: the start has routes 1 to %d", text, k, len(s.Routes))
		}
		if n > len(s.Routes[k-1]) {
			return nil, fmt.Errorf("--fix %s: route %d has %s, not %d", text, k, report.Plural(int64(len(s.Routes[k-1])), "stop"), n)
		}
		fixed[k-1] = int32(n)
	}
	return fixed, nil
}

// live tells how a search goes: a line that changes on a terminal, events as JSON, nothing in a
// pipe.
type live struct {
	a        *app
	f        *solveFlags
	terminal bool
	event    float64 // when the last event was told, in seconds
	width    int
}

func (a *app) newLive(f *solveFlags) *live {
	return &live{a: a, f: f, terminal: cli.IsTerminal(a.Stderr), event: -1}
}

// progressEvent is one line of a search's --json.
type progressEvent struct {
	Event      string   `json:"event"`
	Seconds    float64  `json:"seconds"`
	Iterations int      `json:"iterations"`
	Cost       float64  `json:"cost"`
	RouteCount int      `json:"route_count"`
	Gap        *float64 `json:"gap,omitempty"`
}

func (l *live) show(s search.Progress) {
	gap := cli.Gap(s.Cost, l.f.bestKnown)
	if l.f.json && s.Improved && (l.event < 0 || s.Seconds-l.event >= 0.1) {
		l.event = s.Seconds
		// A reader that went away shows when the result is written.
		_ = l.a.Emit(progressEvent{"progress", s.Seconds, s.Iterations, s.Cost, s.Routes, gap})
	}
	if !l.terminal {
		return
	}
	// What fits a narrow screen, the most telling first: a line that the screen breaks cannot be
	// written over.
	line := fmt.Sprintf("%5.1f s", s.Seconds)
	parts := []string{"best " + draw.Cost(s.Cost)}
	if gap != nil {
		parts = append(parts, "gap "+cli.Percent(*gap))
	}
	parts = append(parts, fmt.Sprintf("%d routes", s.Routes), fmt.Sprintf("%.0f iterations/s", float64(s.Iterations)/max(s.Seconds, 1e-3)))
	for _, part := range parts {
		if len(line)+2+len(part) >= l.a.Width() {
			break
		}
		line += "  " + part
	}
	fmt.Fprintf(l.a.Stderr, "\r%s%s", line, strings.Repeat(" ", max(0, l.width-len(line))))
	l.width = len(line)
}

func (l *live) end() {
	if l.terminal && l.width > 0 {
		fmt.Fprintf(l.a.Stderr, "\r%s\r", strings.Repeat(" ", l.width))
	}
}

// drawCurve draws cost over time.
func (f *solveFlags) drawCurve(p *vrp.Problem, o *outcome) error {
	if f.search.curve == "" {
		return nil
	}
	format, err := draw.FormatOf(f.search.curve)
	if err != nil {
		return cli.AsUsage(err)
	}
	panel := draw.Panel{Title: "cost" + draw.Unit(p), X: "seconds", Curves: []draw.Curve{*o.trace}}
	if f.bestKnown > 0 {
		panel.Level, panel.LevelName = f.bestKnown, "best known"
	}
	words := fmt.Sprintf("%d customers, %d routes, %s after %d iterations", p.N(), len(o.Solution.Routes), draw.Cost(o.Cost), o.Iterations)
	return cli.WriteFile(f.search.curve, func(w io.Writer) error { return draw.Panels(w, format, p.Name, words, panel) })
}

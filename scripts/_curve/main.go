// Command curve draws what routing runs reached over time, beside a published curve:
//
//	go run ./scripts/_curve --run runs/cvrp100 --beside docs/pictures/pomo_cvrp100.csv --rate 781 \
//		--out docs/pictures/cvrp100.svg
//
// Several folders, with commas between them, are runs of which each began with the weights of the
// one before.
//
// What a reader could break: both curves are costs by the same decoder, on one time axis. The time
// of a run is that of its epochs and validations, over all of its pieces, or with --alone what its
// fastest epochs took; the published curve counts instances, which --rate, measured on the same
// card, turns into time. Costs of a run with other validation instances than the first are scaled
// by what the search needs for either. A few hundred of them may be harder or easier than the
// distribution as a whole: --ends states what the last weights have on a large set, and all costs
// are scaled to end there.
package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"haul/internal/config"
	"haul/internal/draw"
)

func main() {
	run := flag.String("run", "", "run folder of a routing policy, or several: a,b began with the weights of a")
	beside := flag.String("beside", "", "CSV with columns instances and cost, and a first line # with its name")
	rate := flag.Float64("rate", 0, "instances per second at which the published curve would have been made on this card")
	level := flag.Float64("level", 0, "a cost to draw as a line (default: what validation is compared with, on the same instances)")
	name := flag.String("level-name", "", "its name")
	title := flag.String("title", "", "of the picture")
	out := flag.String("out", "curve.svg", ".svg or .png")
	alone := flag.Bool("alone", false, "count an epoch as the fastest tenth of its run took: for runs that shared their card with other work")
	ends := flag.Float64("ends", 0, "what the last weights have on a large set of instances by the same decoder: the curve is scaled to end there")
	endsOn := flag.String("ends-on", "a larger set", "the name of that set")
	flag.Parse()
	if err := picture(*run, *beside, *rate, *level, *name, *title, *out, *alone, scaling{*ends, *endsOn}); err != nil {
		fmt.Fprintln(os.Stderr, "curve:", err)
		os.Exit(1)
	}
}

// scaling is where a curve shall end, and on what; 0: as it is.
type scaling struct {
	cost float64
	on   string
}

func picture(run, beside string, rate, level float64, levelName, title, out string, alone bool, ends scaling) error {
	if run == "" {
		return errors.New("--run is needed: a run folder")
	}
	if beside != "" && !(rate > 0) {
		return errors.New("--beside needs --rate: the instances per second that its program makes on this card")
	}
	format, err := draw.FormatOf(out)
	if err != nil {
		return err
	}
	runs := strings.Split(run, ",")
	c, err := config.Load(filepath.Join(runs[0], "config.yaml"), nil)
	if err != nil {
		return err
	}
	own, err := history(runs, c.Problem.NumCustomers(), alone, 1)
	if err == nil && ends.cost > 0 {
		own, err = history(runs, c.Problem.NumCustomers(), alone, ends.cost/own.last)
	}
	if err != nil {
		return err
	}
	panel := draw.Panel{Title: fmt.Sprintf("Cost, %s", decoder(c)), X: "time on one card, training and validation", XFigure: clock}
	if beside != "" {
		other, err := published(beside, rate)
		if err != nil {
			return err
		}
		panel.Curves = append(panel.Curves, other)
	}
	panel.Curves = append(panel.Curves, own.curve)
	panel.Level, panel.LevelName = cmp.Or(level, own.search), cmp.Or(levelName, "search, on the same instances")
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	title = cmp.Or(title, fmt.Sprintf("CVRP%d: %s", c.Problem.NumCustomers(), own.best))
	// the title has the customers
	about := fmt.Sprintf("capacity %d, %d validation instances", c.Problem.VehicleCapacity, c.Training.ValidationInstances)
	if ends.cost > 0 {
		about += ", scaled to " + ends.on
	}
	if alone {
		about += "; time at the pace of the fastest epochs"
	}
	return errors.Join(draw.Panels(file, format, title, about, panel), file.Close())
}

// decoder says how validation routes, in words.
func decoder(c *config.Config) string {
	switch c.Training.ValidationDecode {
	case "pomo":
		return fmt.Sprintf("the best of %d starts", c.Problem.NumCustomers())
	case "pomo8":
		return fmt.Sprintf("the best of %d starts and 8 symmetries", c.Problem.NumCustomers())
	}
	return "one greedy route"
}

// clock writes a figure of the axis, which counts minutes by their logarithm.
func clock(v float64) string {
	minutes := math.Pow(10, v)
	switch {
	case minutes < 1:
		return fmt.Sprintf("%.0f s", 60*minutes)
	case minutes < 100:
		return fmt.Sprintf("%.0f min", minutes)
	}
	if minutes < 1000 {
		return fmt.Sprintf("%.1f h", minutes/60)
	}
	return fmt.Sprintf("%.0f h", minutes/60)
}

// course is the validations of runs over their minutes, the best in words, the last, and the cost
// that those of the first are compared with.
type course struct {
	curve        draw.Curve
	best         string
	last, search float64
}

// history reads the course of runs, its costs times scale.
func history(runs []string, customers int, alone bool, scale float64) (course, error) {
	out := course{curve: draw.Curve{Name: "Haul"}}
	seconds, instances, lowest := 0.0, 0.0, math.Inf(1)
	for _, run := range runs {
		rows, err := table(filepath.Join(run, "csv", "history_gt_rl.csv"), "time_per_epoch", "val_seconds", "baseline_seconds", "val_cost_arithmetic",
			"instances", "gap_to_cpc")
		if err != nil {
			return out, err
		}
		if alone && len(rows) > 0 {
			pace := fastest(rows)
			for _, r := range rows {
				r[0] = pace
			}
		}
		for _, r := range rows {
			seconds += r[0] + r[1] + r[2]
			instances += r[4]
			out.search = cmp.Or(out.search, scale*r[5]*float64(customers))
			cost := scale * r[3] * float64(customers)
			if cost <= 0 {
				continue
			}
			if r[5] > 0 {
				cost = r[3] / r[5] * out.search
			}
			out.curve.Add(math.Log10(seconds/60), cost)
			out.last = cost
			if cost < lowest {
				lowest = cost
				out.best = fmt.Sprintf("%.3f after %.1f minutes, %.1f million instances", cost, seconds/60, instances/1e6)
			}
		}
	}
	if out.best == "" {
		return out, fmt.Errorf("%s: no validation yet", strings.Join(runs, ", "))
	}
	return out, nil
}

// fastest is what an epoch took in the fastest tenth of the rows.
func fastest(rows [][]float64) float64 {
	took := make([]float64, len(rows))
	for i, r := range rows {
		took[i] = r[0]
	}
	slices.Sort(took)
	return took[len(took)/10]
}

// published is a curve by instances, as time at that rate.
func published(path string, rate float64) (curve draw.Curve, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return curve, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	curve.Name = strings.TrimSpace(strings.TrimPrefix(first, "#"))
	rows, err := table(path, "instances", "cost")
	for _, r := range rows {
		curve.Add(math.Log10(r[0]/rate/60), r[1])
	}
	return curve, err
}

// table reads columns of a CSV file; an empty cell is 0, and lines that begin with # are passed
// over.
func table(path string, columns ...string) ([][]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, fmt.Errorf("%s: no table: %w", path, cmp.Or(err, errors.New("it is empty")))
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[name] = i
	}
	var out [][]float64
	for n, line := range lines[1:] {
		var row []float64
		for _, name := range columns {
			i, ok := at[name]
			if !ok {
				return nil, fmt.Errorf("%s has no column %s", path, name)
			}
			v := 0.0
			if line[i] != "" {
				if v, err = strconv.ParseFloat(line[i], 64); err != nil {
					return nil, fmt.Errorf("%s, row %d, %s: %w", path, n+1, name, err)
				}
			}
			row = append(row, v)
		}
		out = append(out, row)
	}
	return out, nil
}

package solve

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/internal/limits"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// Tables of a problem: the table of customers, and the files given beside it. What a reader
// could break: these flags are refused for a file format that contains their information itself.

// tableFlags name the files beside a table of customers, and what no column says.
type tableFlags struct {
	fleet, depots, shipments, distances, durations string
	speed                                          float64
	times                                          string
	capacity                                       bool // --capacity was given
}

var tableFlagNames = []string{"fleet", "depots", "shipments", "distances", "durations", "speed", "times"}

func (f *tableFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.fleet, "fleet", "", "table of vehicles, beside a table of customers: name, count, capacity, shift_start, shift_end, fixed_cost, skills ...")
	fs.StringVar(&f.depots, "depots", "", "table of depots, beside a table of customers: id, x, y, ready, due")
	fs.StringVar(&f.shipments, "shipments", "", "table of shipments: pickup, delivery (ids of customers) and amount, or pickup_lat, pickup_lon, delivery_lat ...")
	fs.StringVar(&f.distances, "distances", "", "matrix of distances: .csv, .npy, or the JSON of OSRM's or Valhalla's table service")
	fs.StringVar(&f.durations, "durations", "", "matrix of durations, in the same formats")
	fs.Float64Var(&f.speed, "speed", 0, "speed of the vehicles of a table: km/h if places have lat and lon, else distance per unit of time")
	fs.StringVar(&f.times, "times", "minutes", "unit of plain numbers of time in a table: minutes, seconds or hours")
}

// check refuses what contradicts itself.
func (f *tableFlags) check(fs *pflag.FlagSet, table bool) error {
	f.capacity = fs.Changed("capacity")
	for _, name := range tableFlagNames {
		if fs.Changed(name) && !table && fs.NArg() > 0 {
			return cli.Usagef("--%s is for tables of customers (.csv, .tsv, .xlsx, .geojson): %s has this information itself", name, fs.Arg(0))
		}
	}
	if fs.Changed("speed") && !(f.speed > 0) {
		return cli.Usagef("--speed is %v: a number above 0 is needed", f.speed)
	}
	return cli.AsUsage(files.KnownTimes(f.times))
}

// readOptions are what a reader of files needs.
func (f *solveFlags) readOptions() (files.Options, error) {
	o := files.Options{Distance: files.Distance(f.distance), Limits: limits.ForCommand()}
	if err := o.Limits.Raise(f.limits); err != nil {
		return o, cli.AsUsage(err)
	}
	if !f.csv {
		return o, nil
	}
	if o.Speed, o.Times = f.tables.speed, f.tables.times; o.Times == "minutes" {
		o.Times = ""
	}
	if f.tables.capacity {
		o.Capacity = f.src.Capacity
	}
	for _, in := range []struct {
		path string
		to   **files.Input
	}{{f.tables.fleet, &o.Fleet}, {f.tables.depots, &o.Depots}, {f.tables.shipments, &o.Shipments}, {f.tables.distances, &o.Distances}, {f.tables.durations, &o.Durations}} {
		if in.path == "" {
			continue
		}
		data, err := os.ReadFile(in.path)
		if err != nil {
			return o, err
		}
		*in.to = &files.Input{Name: in.path, Data: data}
	}
	return o, nil
}

// asCapacity words in flags what a table of customers lacks.
func asCapacity(err error) error {
	if errors.Is(err, files.ErrCapacity) {
		return cli.Usagef("--capacity is missing: a table of stops does not say what a vehicle carries; or give a table of vehicles with --fleet")
	}
	return err
}

// limit sets the number of vehicles and the objective that flags ask for.
func (f *solveFlags) limit(path string, p *vrp.Problem) error {
	if f.goal != "" {
		var err error
		if p.Objective, err = files.ParseObjective(f.goal); err != nil {
			return err
		}
	}
	if !f.fleetGiven {
		return nil
	}
	if p.Fleet != nil && slices.ContainsFunc(p.Fleet, func(t vrp.VehicleType) bool { return t.Count != f.vehicles }) {
		return fmt.Errorf("--vehicles %d: %s says itself which vehicles there are", f.vehicles, cli.Spoken(path))
	}
	if p.Fleet == nil {
		p.Vehicles = f.vehicles
	}
	return nil
}

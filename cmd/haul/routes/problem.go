// Package routes has what the verbs about one routing problem share (solve, check, convert): the
// problem as its file and the flags state it, and the report of routes.
package routes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/internal/limits"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// Problem is the file of a command line, with the flags that say what the file leaves open.
type Problem struct {
	Path  string
	VROOM *files.VROOM // of a problem in VROOM's JSON
	// ReadSeconds is the time that reading VROOM's JSON took.
	ReadSeconds float64
	// Own are keys of --set that only one verb has.
	Own []Setting

	capacity                     int32
	vehicles                     int
	goal                         string // the objective, in a file's words
	open                         bool
	speed                        float64
	with, set                    []string
	capacityGiven, vehiclesGiven bool
	times                        string
	distance                     string
	limits, ignore               []string
	table, object                bool   // what kind of file it is
	given                        []byte // what came from standard input
	fleet, depots, shipments     string
	distances, durations         string
}

// Setting is a key of --set.
type Setting struct {
	Key, Text string
	Take      func(value string) error
}

// Group is the heading of the problem's flags in help.
const Group = "Problem"

// Register adds the flags.
func (p *Problem) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.Int32Var(&p.capacity, "capacity", 0, "capacity of a vehicle, for a table of customers")
	fs.IntVar(&p.vehicles, "vehicles", 0, "most vehicles to use; 0 lifts the file's limit")
	fs.StringVar(&p.goal, "objective", "", "what to minimise: cost, vehicles or longest_route")
	fs.BoolVar(&p.open, "open", false, "open routes: vehicles do not return to the depot")
	fs.Float64Var(&p.speed, "speed", 0, "of a table's vehicles: km/h with lat and lon")
	fs.StringArrayVar(&p.with, "with", nil, "file beside a table: fleet=, depots=, shipments=, distances= ...")
	fs.StringArrayVar(&p.set, "set", nil, "rarer settings, as KEY=VALUE: distance=exact, times=hours ...")
	cli.Grouped(cmd, Group, "capacity", "vehicles", "objective", "open", "speed", "with", "set")
}

// roles are the files that stand beside a table of customers.
func (p *Problem) roles() map[string]*string {
	return map[string]*string{"fleet": &p.fleet, "depots": &p.depots, "shipments": &p.shipments, "distances": &p.distances, "durations": &p.durations}
}

// settings are the keys of --set, limits apart.
func (p *Problem) settings() []Setting {
	return append([]Setting{
		{"distance", "rounding of distances: rounded, exact, dimacs, ceil or trunc", func(v string) error {
			_, err := files.ParseDistance(v)
			p.distance = v
			return err
		}},
		{"times", "unit of plain numbers of time in a table: minutes, seconds or hours", func(v string) error {
			p.times = v
			return files.KnownTimes(v)
		}},
		{"ignore", "columns of a table that are not read: zone,team; * for all that are not known", func(v string) error {
			p.ignore = strings.Split(v, ",")
			return nil
		}},
	}, p.Own...)
}

// Check reads the flags, tells what kind of file it is, and refuses flags that do not go with it.
func (p *Problem) Check(fs *pflag.FlagSet, path string) error {
	p.Path, p.capacityGiven, p.vehiclesGiven = path, fs.Changed("capacity"), fs.Changed("vehicles")
	if err := p.look(); err != nil {
		return err
	}
	roles := p.roles()
	for _, text := range p.with {
		role, file, ok := strings.Cut(text, "=")
		to := roles[role]
		switch {
		case !ok || to == nil:
			return cli.Usagef("--with %s: write ROLE=FILE, and as the role fleet, depots, shipments, distances or durations", text)
		case file == "" || file == cli.StandardInput:
			return cli.Usagef("--with %s: name a file behind the =", text)
		case *to != "":
			return cli.Usagef("--with %s=%s: the %s are given twice, first by %s", role, file, role, *to)
		}
		*to = file
	}
	if err := p.readSettings(); err != nil {
		return err
	}
	for _, name := range []string{"capacity", "speed", "with"} {
		if fs.Changed(name) && !p.table {
			return cli.Usagef("--%s is for tables of customers (.csv, .tsv, .xlsx, .geojson): %s has this information itself", name, cli.Spoken(path))
		}
	}
	if !p.table && (p.times != "" || p.ignore != nil) {
		key := "times"
		if p.ignore != nil {
			key = "ignore"
		}
		return cli.Usagef("--set %s is for tables of customers (.csv, .tsv, .xlsx, .geojson): %s has this information itself", key, cli.Spoken(path))
	}
	if p.goal != "" {
		if _, err := files.ParseObjective(p.goal); err != nil {
			return cli.Usagef("--%v", err)
		}
	}
	switch {
	case p.capacityGiven && p.capacity < 1:
		return cli.Usagef("--capacity is %d: at least 1 is needed", p.capacity)
	case fs.Changed("speed") && !(p.speed > 0):
		return cli.Usagef("--speed is %v: a number above 0 is needed", p.speed)
	case p.vehicles < 0:
		return cli.Usagef("--vehicles is %d: at least 1 is needed, or 0 for any number", p.vehicles)
	}
	return nil
}

// readSettings takes the values of --set.
func (p *Problem) readSettings() error {
	known := p.settings()
	for _, text := range p.set {
		key, value, _ := strings.Cut(text, "=")
		i := slices.IndexFunc(known, func(s Setting) bool { return s.Key == key })
		switch {
		case i >= 0 && value == "":
			return cli.Usagef("--set %s: it has no value: %s", text, known[i].Text)
		case i >= 0:
			if err := known[i].Take(value); err != nil {
				return cli.AsUsage(err)
			}
		case !limits.Known(key):
			var keys []string
			for _, s := range known {
				keys = append(keys, s.Key)
			}
			return cli.Usagef("--set %s: there is no such setting: they are %s, and the limits %s", text, strings.Join(keys, ", "), limits.Keys())
		default:
			p.limits = append(p.limits, text)
		}
	}
	return cli.AsUsage(limits.ForCommand().Raise(p.limits))
}

// look tells a table from a .vrp: by the name where it says so, else by its header. What comes
// through a pipe is read for that.
func (p *Problem) look() (err error) {
	path, from := p.Path, os.Stdin
	if path == "" {
		return cli.Usagef("the name of the file with the problem is empty")
	}
	if path != cli.StandardInput {
		st, err := os.Stat(path)
		if p.object = strings.EqualFold(filepath.Ext(path), ".json"); p.object && err == nil && st.Mode().IsRegular() {
			if p.table, err = isGeoJSON(path); err != nil {
				return err
			}
			p.object = !p.table
		}
		if p.table = isTable(path); p.table || p.object || strings.EqualFold(filepath.Ext(path), ".vrp") || err != nil || st.Mode()&(os.ModeType&^os.ModeNamedPipe) != 0 {
			return nil // what cannot be read is told by who reads it
		}
		if from, err = os.Open(path); err != nil {
			return err
		}
		defer from.Close()
		if st.Mode().IsRegular() {
			head := make([]byte, 512)
			n, err := io.ReadFull(from, head)
			if p.object = files.LooksJSON(head[:n]); p.object || err != nil && n == 0 {
				if p.object { // an empty file is told of by who reads it
					p.table, err = isGeoJSON(path)
					p.object = !p.table
					return err
				}
				return nil
			}
			if _, err = from.Seek(0, io.SeekStart); err == nil {
				p.table, err = files.StartsTable(from)
			}
			return err
		}
	}
	if p.given, err = io.ReadAll(from); err != nil {
		return fmt.Errorf("%s: %w", cli.Spoken(path), err)
	}
	if p.object = files.LooksJSON(p.given) && !files.LooksGeoJSON(p.given); !p.object {
		p.table = files.IsTable(p.given) || files.LooksGeoJSON(p.given)
	}
	return nil
}

// isGeoJSON tells a file of points, which is a table, whatever it is called.
func isGeoJSON(path string) (bool, error) {
	text, err := os.ReadFile(path)
	return err == nil && files.LooksGeoJSON(text), err
}

// isTable tells a table by the end of its name.
func isTable(path string) bool {
	return slices.Contains([]string{".csv", ".tsv", ".xlsx", ".geojson"}, strings.ToLower(filepath.Ext(path)))
}

// readOptions are what a reader of files needs.
func (p *Problem) readOptions() (files.Options, error) {
	o := files.Options{Distance: files.Distance(p.distance), Limits: limits.ForCommand()}
	if err := o.Limits.Raise(p.limits); err != nil {
		return o, cli.AsUsage(err)
	}
	if !p.table {
		return o, nil
	}
	if o.Speed, o.Times = p.speed, p.times; o.Times == "minutes" {
		o.Times = ""
	}
	o.Capacity, o.Ignore = p.capacity, p.ignore
	to := map[string]**files.Input{"fleet": &o.Fleet, "depots": &o.Depots, "shipments": &o.Shipments, "distances": &o.Distances, "durations": &o.Durations}
	for role, path := range p.roles() {
		if *path == "" {
			continue
		}
		data, err := os.ReadFile(*path)
		if err != nil {
			return o, err
		}
		*to[role] = &files.Input{Name: *path, Data: data}
	}
	return o, nil
}

// Load reads the problem and lays the flags over it. drawn says that its places are needed.
func (p *Problem) Load(drawn bool) (*vrp.Problem, error) {
	path := p.Path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name a .vrp or .csv file", path)
	}
	if ext := strings.ToLower(filepath.Ext(path)); slices.Contains([]string{".npz", ".pkl", ".pt"}, ext) {
		return nil, cli.Usagef("%s holds a set of instances: haul eval %s solves them", path, path)
	}
	o, err := p.readOptions()
	if err != nil {
		return nil, err
	}
	var q *vrp.Problem
	switch {
	case p.object:
		if q, err = p.readObject(o.Limits, drawn); err == nil {
			o.Distance.Apply(q)
			if err = q.Within(o.Limits); err != nil {
				err = fmt.Errorf("%s: %w", cli.Spoken(path), err)
			}
		}
	case p.given != nil:
		q, err = files.ReadProblem(bytes.NewReader(p.given), cli.Spoken(path), o)
	default:
		q, err = files.LoadProblem(path, o)
	}
	if errors.Is(err, files.ErrCapacity) {
		return nil, cli.Usagef("--capacity is missing: a table of stops does not say what a vehicle carries; or give a table of vehicles with --with fleet=FILE")
	}
	if err != nil {
		return nil, err
	}
	if q.X == nil && drawn {
		return nil, fmt.Errorf("cannot draw %s: the file gives distances but no coordinates", q.Name)
	}
	if p.goal != "" {
		if q.Objective, err = files.ParseObjective(p.goal); err != nil {
			return nil, err
		}
	}
	if p.vehiclesGiven {
		if q.Fleet != nil && slices.ContainsFunc(q.Fleet, func(t vrp.VehicleType) bool { return t.Count != p.vehicles }) {
			return nil, fmt.Errorf("--vehicles %d: %s says itself which vehicles there are", p.vehicles, cli.Spoken(path))
		}
		if q.Fleet == nil {
			q.Vehicles = p.vehicles
		}
	}
	q.Open = q.Open || p.open
	if err := q.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return q, nil
}

// Rounded is the problem read with another rounding of distances, for whom none was asked; nil
// where there is no such choice.
func (p *Problem) Rounded(distance string) *vrp.Problem {
	if p.distance != "" || p.VROOM != nil {
		return nil
	}
	other := *p
	other.distance = distance
	q, err := other.Load(false)
	if err != nil {
		return nil
	}
	return q
}

// readObject reads a problem in JSON.
func (p *Problem) readObject(most *limits.Set, drawn bool) (*vrp.Problem, error) {
	text, path := p.given, p.Path
	if text == nil {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	name := strings.TrimSuffix(filepath.Base(cli.Spoken(path)), filepath.Ext(path))
	if files.LooksVROOM(text) {
		v, err := files.ReadVROOM(text, 0, most)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cli.Spoken(path), err)
		}
		if v.Blind && drawn {
			return nil, fmt.Errorf("cannot draw %s: its tasks have no location", cli.Spoken(path))
		}
		p.VROOM, p.ReadSeconds, v.Problem.Name = v, time.Since(began).Seconds(), name
		return v.Problem, nil
	}
	q, err := files.ReadJSON(bytes.NewReader(text), cli.Spoken(path))
	if err == nil && q.Name == "" {
		q.Name = name
	}
	return q, err
}

// Keep refuses to overwrite a file that the problem is read from, even with --force. written are
// the files to write by their flags; "" is none.
func (p *Problem) Keep(written map[string]string) error {
	for flag, to := range written {
		st, err := os.Stat(to)
		if to == "" || err != nil || !st.Mode().IsRegular() {
			continue
		}
		for _, from := range []string{p.Path, p.fleet, p.depots, p.shipments, p.distances, p.durations} {
			if in, err := os.Stat(from); from != "" && err == nil && os.SameFile(in, st) {
				return cli.Usagef("--%s %s is a file that the problem is read from: name another file", flag, to)
			}
		}
	}
	return nil
}

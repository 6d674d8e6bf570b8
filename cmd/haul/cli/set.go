package cli

import (
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/vrp"
	"haul/internal/vrp/files"
	"haul/internal/vrp/testset"
)

// Set is a set of instances by its name on the command line.
type Set struct {
	Kind      string // grid, uniform, tsp, tsp-grid, kool, routefinder, or file
	Customers int    // per instance; 0: not said
	Variant   string // of routefinder
	Split     string // of kool
	File      string
}

// SetUsage says how a set is named.
const SetUsage = `SET is grid:N, uniform:N, tsp:N or tsp-grid:N (drawn instances of N customers), kool:N or kool:N/validation (the public sets of Kool et
al., 2019: 10, 20, 50 or 100 customers; also 200, 500 and 1000 from their generator), routefinder:VARIANT/N (the public sets of RouteFinder,
Berto et al., 2024: 48 variants of 50 or 100 customers)`

// drawn are the kinds whose instances are drawn as flags say.
var drawn = []string{"grid", "uniform", "tsp", "tsp-grid"}

// Drawn reports whether the instances are drawn, and no public set or file.
func (s Set) Drawn() bool { return slices.Contains(drawn, s.Kind) }

// ParseSet reads the name of a set.
func ParseSet(text string) (Set, error) {
	head, part, parts := strings.Cut(text, "/")
	kind, size, _ := strings.Cut(head, ":")
	s := Set{Kind: kind, Variant: "cvrp", Split: testset.Test}
	switch {
	case slices.Contains(drawn, kind) && !parts:
		if size == "" {
			return s, Usagef("%s: say how many customers, as in %s:20", text, kind)
		}
	case kind == "kool" && (!parts || part == testset.Test || part == testset.Validation || size != ""):
		if parts {
			s.Split = part
		}
		if s.Split != testset.Test && s.Split != testset.Validation {
			return s, Usagef("%s: %q is no part of the set: use %s or %s", text, s.Split, testset.Test, testset.Validation)
		}
	case kind == "routefinder":
		if _, err := strconv.Atoi(size); size != "" && err != nil {
			s.Variant, size = size, part
		}
	case text == "":
		return s, Usagef("the name of the set is empty: write grid:20, kool:100 or a file")
	default:
		return Set{Kind: "file", File: text}, nil
	}
	if size == "" {
		return s, nil
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || n > maxCustomers {
		return s, Usagef("%s: the number of customers is %q: 1 to %d are possible", text, size, maxCustomers)
	}
	s.Customers = n
	return s, nil
}

// maxCustomers keeps a slip of the finger from asking for more memory than there is.
const maxCustomers = 1_000_000

// SetFlags say how the instances of a set are drawn, and which of them are meant. An instance
// depends on these, the set and its index alone, so two verbs given the same see the same ones.
type SetFlags struct {
	Count                int
	Capacity, coordRange int32
	Seed, First          uint64
	demandRange          string

	given func(flag string) bool // whether the command line has it
}

// gridRange is the default largest coordinate of the grid.
const gridRange = 100

// Register adds the flags of drawn instances, and with all those that every set has.
func (f *SetFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.given = fs.Changed
	fs.Int32Var(&f.Capacity, "capacity", 30, "capacity of a vehicle, of drawn instances")
	fs.StringVar(&f.demandRange, "demand-range", "", "smallest and largest demand drawn (default 1,10 for grid and 1,9 for uniform)")
	fs.Int32Var(&f.coordRange, "coord-range", gridRange, "largest coordinate of a grid")
	Grouped(cmd, "Drawn instances", "capacity", "demand-range", "coord-range")
}

// RegisterRange adds the flags that choose instances of any set.
func (f *SetFlags) RegisterRange(cmd *cobra.Command, count int) {
	fs := cmd.Flags()
	fs.IntVar(&f.Count, "count", count, "number of instances; of a public set or a file all, where it is not given")
	fs.Uint64Var(&f.Seed, "seed", 42, "random seed of drawn instances")
	fs.Uint64Var(&f.First, "first", 0, "index of the first instance")
}

// Source checks the flags of a drawn set; whatever is wrong with them is wrong use.
func (f *SetFlags) Source(set Set) (vrp.Source, error) {
	var s vrp.Source
	if f.Count < 1 {
		return s, Usagef("--count is %d: at least 1 instance is needed", f.Count)
	}
	if last := f.First + uint64(f.Count) - 1; last < f.First {
		return s, Usagef("--first %d and --count %d pass the end of the stream, %d", f.First, f.Count, uint64(math.MaxUint64))
	}
	single := strings.HasPrefix(set.Kind, "tsp")
	distribution := vrp.Grid
	if set.Kind == "uniform" || set.Kind == "tsp" {
		distribution = vrp.Uniform
	}
	for _, name := range []string{"capacity", "demand-range"} {
		if single && f.given(name) {
			return s, Usagef("--%s is about several routes, and %s has one vehicle that carries all: leave it out", name, set.Kind)
		}
	}
	if distribution == vrp.Uniform && f.given("coord-range") {
		return s, Usagef("--coord-range is about the grid, and %s draws from the unit square: leave it out", set.Kind)
	}
	text := f.demandRange
	if text == "" {
		text = "1,10"
		if distribution == vrp.Uniform {
			text = "1,9"
		}
	}
	low, high, err := parseRange(text)
	if err != nil {
		return s, err
	}
	s = vrp.Source{Seed: f.Seed, Distribution: distribution, N: set.Customers, Capacity: f.Capacity,
		DemandMin: low, DemandMax: high, CoordRange: f.coordRange}
	if single {
		s.Single, s.Capacity, s.DemandMin, s.DemandMax = true, int32(set.Customers), 1, 1
	}
	return s, AsUsage(s.Check())
}

func parseRange(text string) (low, high int32, err error) {
	a, b, ok := strings.Cut(text, ",")
	lo, errLow := strconv.ParseInt(strings.TrimSpace(a), 10, 32)
	hi, errHigh := strconv.ParseInt(strings.TrimSpace(b), 10, 32)
	if !ok || errLow != nil || errHigh != nil {
		return 0, 0, Usagef("--demand-range %q is not two whole numbers: write it as 1,10", text)
	}
	return int32(lo), int32(hi), nil
}

// Generate draws instances.
func Generate(src vrp.Source, first uint64, count int) []*vrp.Problem {
	batch := vrp.NewBatch(count, src.N, src.Capacity)
	src.Fill(batch, first)
	problems := make([]*vrp.Problem, count)
	for i := range problems {
		problems[i] = batch.Problem(i)
	}
	return problems
}

// Load makes or reads a public set or a file: all of it, or the instances that are meant. costs
// names a file of costs to compare with; "" is none.
func (f *SetFlags) Load(set Set, seed bool, costs string) (*testset.Set, error) {
	for _, name := range []string{"capacity", "demand-range", "coord-range"} {
		if f.given(name) {
			return nil, Usagef("--%s is about drawn instances: leave it out", name)
		}
	}
	if seed {
		return nil, Usagef("--seed is about drawn instances: leave --seed out")
	}
	var s *testset.Set
	var err error
	switch set.Kind {
	case "kool":
		s, err = testset.Kool(set.Customers, set.Split)
		err = AsUsage(err)
	case "routefinder":
		s, err = testset.RouteFinder(set.Variant, set.Customers)
		err = AsUsage(err)
	default:
		s, err = testset.Load(set.File, files.Options{})
		if errors.Is(err, os.ErrNotExist) {
			err = Usagef("%s is neither a file nor the name of a set: those are grid:20, uniform:20, tsp:20, kool:20, routefinder:vrptw/50", set.File)
		}
	}
	if err != nil {
		return nil, err
	}
	count := len(s.Problems)
	if f.given("count") {
		count = f.Count
	}
	if count < 1 {
		return nil, Usagef("--count is %d: at least 1 instance is needed", count)
	}
	if f.First >= uint64(len(s.Problems)) || f.given("count") && f.First+uint64(count) > uint64(len(s.Problems)) {
		return nil, Usagef("--first %d and --count %d pass the %d instances of %s", f.First, count, len(s.Problems), s.Name)
	}
	if costs != "" {
		s.Cut(0, int(f.First)+count) // the file may know the first of them alone
		if err := s.LoadReference(costs); err != nil {
			return nil, err
		}
	}
	s.Cut(int(f.First), count)
	return s, nil
}

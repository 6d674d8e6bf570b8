package cli

import (
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/vrp"
)

func Generate(src vrp.Source, first uint64, count int) []*vrp.Problem {
	batch := vrp.NewBatch(count, src.N, src.Capacity)
	src.Fill(batch, first)
	problems := make([]*vrp.Problem, count)
	for i := range problems {
		problems[i] = batch.Problem(i)
	}
	return problems
}

// SourceFlags describes generated instances, for every verb that makes some. An instance depends on
// these and its index alone, so two verbs given the same flags see the same instances.
type SourceFlags struct {
	Customers, Count     int
	Capacity, coordRange int32
	Seed, First          uint64
	distribution         string
	demandRange          string
	single               bool

	given func(flag string) bool // whether the command line has it
}

// maxCustomers keeps a slip of the finger from asking for more memory than there is.
const maxCustomers = 1_000_000

// gridRange is the default largest coordinate of the grid.
const gridRange = 100

// SourceFlagNames are the flags that mean nothing for an instance read from a file.
var SourceFlagNames = []string{"customers", "capacity", "count", "seed", "first", "distribution", "demand-range", "coord-range", "single-tour"}

func (f *SourceFlags) Register(cmd *cobra.Command, count int) {
	fs := cmd.Flags()
	f.given = fs.Changed
	fs.IntVar(&f.Customers, "customers", 10, "customers per generated instance (N)")
	fs.Int32Var(&f.Capacity, "capacity", 30, "capacity of a vehicle")
	fs.IntVar(&f.Count, "count", count, "number of instances")
	fs.Uint64Var(&f.Seed, "seed", 42, "random seed")
	fs.Uint64Var(&f.First, "first", 0, "index of the first instance that is generated")
	fs.StringVar(&f.distribution, "distribution", string(vrp.Grid), "where generated customers lie: grid (integers 0..coord-range) or uniform (unit square)")
	fs.StringVar(&f.demandRange, "demand-range", "", "smallest and largest generated demand (default 1,10 for grid and 1,9 for uniform)")
	fs.Int32Var(&f.coordRange, "coord-range", gridRange, "largest coordinate of grid instances")
	fs.BoolVar(&f.single, "single-tour", false, "travelling salesman problem: one vehicle without a capacity")
}

// Source checks the flags; whatever is wrong with them is wrong use.
func (f *SourceFlags) Source() (vrp.Source, error) {
	var s vrp.Source
	if f.Count < 1 {
		return s, Usagef("--count is %d: at least 1 instance is needed", f.Count)
	}
	if last := f.First + uint64(f.Count) - 1; last < f.First {
		return s, Usagef("--first %d and --count %d pass the end of the stream, %d", f.First, f.Count, uint64(math.MaxUint64))
	}
	if f.Customers > maxCustomers {
		return s, Usagef("--customers is %d: at most %d can be generated", f.Customers, maxCustomers)
	}
	distribution, err := vrp.ParseDistribution(f.distribution)
	if err != nil {
		return s, AsUsage(err)
	}
	for _, name := range []string{"capacity", "demand-range"} {
		if f.single && f.given(name) {
			return s, Usagef("--%s is about several routes, and --single-tour has one vehicle that carries all: leave one of them out", name)
		}
	}
	if distribution == vrp.Uniform && f.given("coord-range") {
		return s, Usagef("--coord-range is about the grid, and --distribution uniform draws from the unit square: leave one of them out")
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
	s = vrp.Source{Seed: f.Seed, Distribution: distribution, N: f.Customers, Capacity: f.Capacity,
		DemandMin: low, DemandMax: high, CoordRange: f.coordRange}
	if f.single {
		s.Single, s.Capacity, s.DemandMin, s.DemandMax = true, int32(f.Customers), 1, 1
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

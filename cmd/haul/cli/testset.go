package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/vrp/files"
	"haul/internal/vrp/testset"
)

// TestsetKool names the public test sets of Kool et al. (2019), which are made again from their
// seed; any other name is a file.
const TestsetKool = "kool"

// TestsetRouteFinder names those of RouteFinder, by variant.
const TestsetRouteFinder = "routefinder"

// TestsetFlags name a set of instances in place of generated ones.
type TestsetFlags struct {
	Name    string
	Split   string
	variant string
	costs   string // a file with what others' routes cost
	rounded bool   // the references' own problems
}

func (f *TestsetFlags) Register(cmd *cobra.Command, files string) {
	cmd.Flags().StringVar(&f.Name, "testset", "", "public test set: kool (Kool et al.; --customers 10, 20, 50 or 100; also 200, 500 and 1000 from its generator) or routefinder (--customers 50 or 100)"+files)
	cmd.Flags().StringVar(&f.variant, "variant", "cvrp", "variant of --testset routefinder, one of 48: cvrp, vrptw, ovrpbl, mdvrpmbltw, ...")
	cmd.Flags().StringVar(&f.Split, "split", testset.Test, "part of --testset kool: test or validation")
	cmd.Flags().StringVar(&f.costs, "reference", "", "file of costs to compare a test set's with: .npz, .pkl, .csv (column reference or cost), or one number per line")
}

// RegisterRounded is for commands that compare with references.
func (f *TestsetFlags) RegisterRounded(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.rounded, "rounded", false, "with --testset routefinder: round distances, windows, services and limits to thousandths, as its references do")
}

// Check refuses flags that describe instances which the set fixes.
func (f *TestsetFlags) Check(fs *pflag.FlagSet) error {
	if f.Name != TestsetRouteFinder && fs.Changed("variant") {
		return Usagef("--variant is about RouteFinder's test sets: name them with --testset routefinder")
	}
	if f.Name != TestsetRouteFinder && f.rounded {
		return Usagef("--rounded is about RouteFinder's test sets: name them with --testset routefinder")
	}
	if f.Name == TestsetRouteFinder && fs.Changed("split") {
		return Usagef("--split is about the sets of Kool et al.: RouteFinder has only test sets")
	}
	if f.Name == "" && f.costs != "" {
		return Usagef("--reference is about a test set: name it with --testset")
	}
	if f.Name == "" {
		if fs.Changed("split") {
			return Usagef("--split is about a public test set: name it with --testset kool")
		}
		return nil
	}
	fixed := []string{"capacity", "distribution", "demand-range", "coord-range", "seed", "single-tour"}
	if f.Name != TestsetKool && f.Name != TestsetRouteFinder {
		fixed = append(fixed, "customers", "split")
	}
	for _, name := range fixed {
		if fs.Changed(name) {
			return Usagef("--%s and --testset %s both describe the instances: leave --%s out", name, f.Name, name)
		}
	}
	return nil
}

// Load makes or reads the set: all of it, or the instances that --first and --count ask for.
func (f *TestsetFlags) Load(fs *pflag.FlagSet, src *SourceFlags) (*testset.Set, error) {
	var s *testset.Set
	var err error
	switch f.Name {
	case TestsetKool:
		s, err = testset.Kool(src.Customers, f.Split)
		err = AsUsage(err)
	case TestsetRouteFinder:
		s, err = testset.RouteFinder(f.variant, src.Customers)
		err = AsUsage(err)
	default:
		s, err = testset.Load(f.Name, files.Options{})
		if errors.Is(err, os.ErrNotExist) {
			err = Usagef("--testset %s is neither a file nor the name of a public set: those are kool and routefinder", f.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	count := len(s.Problems)
	if fs.Changed("count") {
		count = src.Count
	}
	if count < 1 {
		return nil, Usagef("--count is %d: at least 1 instance is needed", count)
	}
	if src.First >= uint64(len(s.Problems)) || fs.Changed("count") && src.First+uint64(count) > uint64(len(s.Problems)) {
		return nil, Usagef("--first %d and --count %d pass the %d instances of %s", src.First, count, len(s.Problems), f.Name)
	}
	if f.costs != "" {
		s.Cut(0, int(src.First)+count) // the file may know the first of them alone
		if err := s.LoadReference(f.costs); err != nil {
			return nil, err
		}
	}
	s.Cut(int(src.First), count)
	if f.rounded {
		s.Round()
	}
	return s, nil
}

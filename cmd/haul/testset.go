package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/vrp/files"
	"haul/internal/vrp/testset"
)

// testsetKool names the public test sets of Kool et al. (2019), which are made again from their
// seed; any other name is a file.
const testsetKool = "kool"

// testsetRouteFinder names those of RouteFinder, by variant.
const testsetRouteFinder = "routefinder"

// testsetFlags name a set of instances in place of generated ones.
type testsetFlags struct {
	name    string
	split   string
	variant string
	costs   string // a file with what others' routes cost
	rounded bool   // the references' own problems
}

func (f *testsetFlags) register(cmd *cobra.Command, files string) {
	cmd.Flags().StringVar(&f.name, "testset", "", "public test set: kool (Kool et al.; --customers 10, 20, 50 or 100; also 200, 500 and 1000 from its generator) or routefinder (--customers 50 or 100)"+files)
	cmd.Flags().StringVar(&f.variant, "variant", "cvrp", "variant of --testset routefinder, one of 48: cvrp, vrptw, ovrpbl, mdvrpmbltw, ...")
	cmd.Flags().StringVar(&f.split, "split", testset.Test, "part of --testset kool: test or validation")
	cmd.Flags().StringVar(&f.costs, "reference", "", "file of costs to compare a test set's with: .npz, .pkl, .csv (column reference or cost), or one number per line")
}

// registerRounded is for commands that compare with references.
func (f *testsetFlags) registerRounded(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.rounded, "rounded", false, "with --testset routefinder: round distances, windows, services and limits to thousandths, as its references do")
}

// check refuses flags that describe instances which the set fixes.
func (f *testsetFlags) check(fs *pflag.FlagSet) error {
	if f.name != testsetRouteFinder && fs.Changed("variant") {
		return usagef("--variant is about RouteFinder's test sets: name them with --testset routefinder")
	}
	if f.name != testsetRouteFinder && f.rounded {
		return usagef("--rounded is about RouteFinder's test sets: name them with --testset routefinder")
	}
	if f.name == testsetRouteFinder && fs.Changed("split") {
		return usagef("--split is about the sets of Kool et al.: RouteFinder has only test sets")
	}
	if f.name == "" && f.costs != "" {
		return usagef("--reference is about a test set: name it with --testset")
	}
	if f.name == "" {
		if fs.Changed("split") {
			return usagef("--split is about a public test set: name it with --testset kool")
		}
		return nil
	}
	fixed := []string{"capacity", "distribution", "demand-range", "coord-range", "seed", "single-tour"}
	if f.name != testsetKool && f.name != testsetRouteFinder {
		fixed = append(fixed, "customers", "split")
	}
	for _, name := range fixed {
		if fs.Changed(name) {
			return usagef("--%s and --testset %s both describe the instances: leave --%s out", name, f.name, name)
		}
	}
	return nil
}

// load makes or reads the set: all of it, or the instances that --first and --count ask for.
func (f *testsetFlags) load(fs *pflag.FlagSet, src *sourceFlags) (*testset.Set, error) {
	var s *testset.Set
	var err error
	switch f.name {
	case testsetKool:
		s, err = testset.Kool(src.customers, f.split)
		err = asUsage(err)
	case testsetRouteFinder:
		s, err = testset.RouteFinder(f.variant, src.customers)
		err = asUsage(err)
	default:
		s, err = testset.Load(f.name, files.Options{})
		if errors.Is(err, os.ErrNotExist) {
			err = usagef("--testset %s is neither a file nor the name of a public set: those are kool and routefinder", f.name)
		}
	}
	if err != nil {
		return nil, err
	}
	count := len(s.Problems)
	if fs.Changed("count") {
		count = src.count
	}
	if count < 1 {
		return nil, usagef("--count is %d: at least 1 instance is needed", count)
	}
	if src.first >= uint64(len(s.Problems)) || fs.Changed("count") && src.first+uint64(count) > uint64(len(s.Problems)) {
		return nil, usagef("--first %d and --count %d pass the %d instances of %s", src.first, count, len(s.Problems), f.name)
	}
	if f.costs != "" {
		s.Cut(0, int(src.first)+count) // the file may know the first of them alone
		if err := s.LoadReference(f.costs); err != nil {
			return nil, err
		}
	}
	s.Cut(int(src.first), count)
	if f.rounded {
		s.Round()
	}
	return s, nil
}

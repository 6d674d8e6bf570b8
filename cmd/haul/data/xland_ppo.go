package data

import (
	"errors"
	"fmt"
	"slices"

	"haul/cmd/haul/cli"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/recipe"
	"haul/internal/world/history"
)

// networkDevice is where recurrent networks learn, by name.
func (f *xlandFlags) networkDevice() string {
	if f.device == "auto" {
		return "cpu"
	}
	return f.device
}

// checkDevice refuses devices and precisions that networks do not learn in.
func (f *xlandFlags) checkDevice() error { return checkNetworkDevice(f.networkDevice(), f.precision) }

// checkNetworkDevice refuses devices and precisions that recurrent networks do not learn in.
func checkNetworkDevice(name, precision string) error {
	at, err := device.ParseName(name)
	switch {
	case err != nil:
		return err
	case at.CPU && precision == "tf32":
		return errors.New("--precision tf32 is for GPUs: on a CPU networks learn in fp32")
	case !slices.Contains([]string{"", "fp32", "tf32"}, precision):
		return fmt.Errorf("--precision is %s: networks learn in fp32, or in tf32 on a GPU", precision)
	}
	return nil
}

// noteUnlearned tells of steps and environments that are recorded and not learned from.
func (a *app) noteUnlearned(s *recipe.Recurrent) {
	if s.Steps%s.Rollout > 0 {
		fmt.Fprintf(a.Stderr, "--steps %d is no multiple of --rollout %d: the rest is recorded and not learned from\n", s.Steps, s.Rollout)
	}
	if n := s.Left(); n > 0 {
		fmt.Fprintf(a.Stderr, "--envs %d: each pass learns from %d of them, drawn anew; a multiple of %d leaves out none\n", s.Envs, s.Envs-n, s.Parts)
	}
}

// withNetworks has recurrent networks live through all tasks: on a CPU one on each core, on a GPU
// one after another. Whoever calls it closes.
func (a *app) withNetworks(f *xlandFlags, o *history.XLandOptions, bar *cli.Bar) (closing func() error, err error) {
	a.noteUnlearned(&f.learning)
	name, tasks := f.networkDevice(), len(o.Learn)+len(o.Held)
	each, many := device.Options{Precision: f.precision}, 1
	cores := o.Workers // of a network's environments
	if name == "cpu" {
		many = min(o.Workers, tasks)
		cores = max(1, o.Workers/many)
		each.Workers = cores
	}
	var devices []kernel.Device
	var pool *recipe.RecurrentPool
	closing = func() error {
		var err error
		if pool != nil {
			err = pool.Close()
		}
		for _, dev := range devices {
			err = cli.FirstOf(err, dev.Close())
		}
		return err
	}
	for range many {
		dev, err := device.Open(name, each)
		if err != nil {
			return nil, cli.FirstOf(err, closing())
		}
		devices = append(devices, dev)
	}
	all := int64(tasks) * int64(f.learning.Steps) * int64(f.learning.Envs)
	pool, err = recipe.NewRecurrentPool(o.World, f.learning, f.seed, devices, cores, func(transitions int64) { bar.Set(int(100 * transitions / all)) })
	if err == nil {
		o.Together, err = pool.Together(o.Histories)
	}
	if err != nil {
		return nil, cli.FirstOf(err, closing())
	}
	o.Lives, o.Whole = pool.Lives, true
	o.Progress = func(int, int) {}
	return closing, nil
}

// Package policy puts a trained routing policy to work in a Go program: load a checkpoint of haul
// train, hand it problems, get routes.
//
//	pi, err := policy.Shipped("cvrp20", policy.Options{})
//	defer pi.Close()
//	s, err := pi.Solve(ctx, problem, "pomo8")
//
// A policy solves problems of any number of customers, best near those it was trained on. Every
// solution was judged by the validator of package vrp.
//
// The package is stable: see docs/go.md for what that means.
package policy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/run"
	"haul/internal/solve"
	"haul/policies"
	"haul/vrp"
	"haul/vrp/internal/link"
)

// Options say where a policy computes. The zero value is the CPU with all its cores.
type Options struct {
	Device  string // cpu or cuda:K; "": cpu
	Workers int    // cores of the CPU; 0: all. Routes do not depend on it
}

// Policy is a trained model on a device. Its methods may be called by many goroutines; it solves
// one problem at a time.
type Policy struct {
	mu    sync.Mutex
	inner *policy.Policy
	dev   kernel.Device
}

// Load puts a policy onto a device: a .safetensors file, or a run folder, of which the best
// checkpoint is taken.
func Load(path string, o Options) (*Policy, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, "best.safetensors")
	}
	return open(o, func(dev kernel.Device) (*policy.Policy, error) { return policy.Load(dev, path) })
}

// Shipped puts a policy that comes with Haul onto a device: Names lists them.
func Shipped(name string, o Options) (*Policy, error) {
	data, err := policies.Read(name)
	if err != nil {
		return nil, err
	}
	ck, err := run.Decode(name, "", data)
	if err != nil {
		return nil, err
	}
	return open(o, func(dev kernel.Device) (*policy.Policy, error) { return policy.New(dev, ck) })
}

// Names are the policies that come with Haul, those for the smallest problems first.
func Names() []string { return policies.Names() }

func open(o Options, load func(kernel.Device) (*policy.Policy, error)) (*Policy, error) {
	name := o.Device
	if name == "" {
		name = "cpu"
	}
	dev, err := device.Open(name, device.Options{Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	inner, err := load(dev)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &Policy{inner: inner, dev: dev}, nil
}

// Customers is the number of customers of the problems that it was trained on.
func (p *Policy) Customers() int { return p.inner.Config.Problem.NumCustomers() }

// Parameters is the number of learned numbers.
func (p *Policy) Parameters() int { return p.inner.Parameters() }

// Solve makes routes for a problem. decode says how: greedy (one route, the likeliest node at every
// step), sample:K (the best of K drawn at random), pomo (the best of one from every customer),
// pomo:T (the same, drawn at temperature T), pomo8, pomo8:T and sample8:K (under the eight
// symmetries of the square), sgbs and sgbs8 (a beam search from there), eas:I and eas8:I (an active
// search of I iterations, which ends with ctx too and then returns the best routes so far); "" is
// greedy. cvrp20 is at its best with pomo8:1. It refuses problems with limits beside the capacity,
// which a policy does not know.
func (p *Policy) Solve(ctx context.Context, problem *vrp.Problem, decode string) (*vrp.Solution, error) {
	d := policy.Greedy
	if decode != "" {
		var err error
		if d, err = policy.ParseDecode(decode); err != nil {
			return nil, err
		}
	}
	if _, err := solve.Choose(link.Inner(problem), solve.Policy, nil); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inner == nil {
		return nil, errors.New("the policy is closed")
	}
	s, _, err := p.inner.Solve(ctx, link.Inner(problem), d)
	if err != nil {
		return nil, err
	}
	out, err := link.Outward(problem, s)
	if err != nil {
		return nil, err
	}
	return out.(*vrp.Solution), nil
}

// Close takes the policy off its device. Calling it twice does no harm.
func (p *Policy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inner == nil {
		return nil
	}
	err := errors.Join(p.inner.Close(), p.dev.Close())
	p.inner, p.dev = nil, nil
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"haul/internal/kernel"
	"haul/internal/recipe/routing"
)

// policyFlags name a trained policy and how it makes routes.
type policyFlags struct {
	checkpoint string
	decode     string
}

func (f *policyFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.checkpoint, "checkpoint", "", "trained policy: a .safetensors file, or a run folder's best")
	cmd.Flags().StringVar(&f.decode, "decode", "greedy", "greedy, sample:K, pomo (a route from every customer), pomo8 (and under 8 symmetries)")
}

// openPolicy opens the device that is fastest for the policy's own settings, or the one asked for, and puts the policy on it. The
// path is that of the checkpoint that was taken.
func (a *app) openPolicy(ctx context.Context, f *policyFlags, d *deviceFlags) (policy *routing.Policy, path string, dev kernel.Device, err error) {
	path, ck, err := checkpointOf(f.checkpoint)
	if err != nil {
		return nil, path, nil, err
	}
	if of := ck.Settings.Recipe(); of != routing.Name {
		return nil, path, nil, fmt.Errorf("load checkpoint %s: it holds model %q, not %s", path, of, routing.Name)
	}
	if dev, err = a.openFor(ctx, d, routing.Recipe{}, ck.Settings); err != nil {
		return nil, path, nil, err
	}
	if policy, err = routing.LoadPolicy(dev, path); err != nil {
		return nil, path, nil, errors.Join(err, dev.Close())
	}
	return policy, path, dev, nil
}

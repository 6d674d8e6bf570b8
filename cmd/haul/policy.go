package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/train"
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

// file is the checkpoint's; of a folder the best, or the last where validation has not picked one yet.
func (f *policyFlags) file() string {
	if st, err := os.Stat(f.checkpoint); err != nil || !st.IsDir() {
		return f.checkpoint
	}
	best := filepath.Join(f.checkpoint, "best.safetensors")
	if _, err := os.Stat(best); err != nil {
		return filepath.Join(f.checkpoint, "last.safetensors")
	}
	return best
}

// openPolicy opens the device that is fastest for the policy's own settings, or the one asked for, and puts the policy on it.
func (a *app) openPolicy(f *policyFlags, d *deviceFlags) (*train.Policy, kernel.Device, error) {
	dev, err := a.open(d, func() (*config.Config, error) { return train.ReadConfig(f.file()) })
	if err != nil {
		return nil, nil, err
	}
	policy, err := train.LoadPolicy(dev, f.file())
	if err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return policy, dev, nil
}

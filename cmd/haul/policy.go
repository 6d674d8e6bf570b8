package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

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

func (f *policyFlags) load(dev kernel.Device) (*train.Policy, error) {
	return train.LoadPolicy(dev, f.file())
}

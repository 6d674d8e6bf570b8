package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/recipe"
	"haul/internal/run"
	"haul/internal/vrp"
	"haul/policies"
)

// policyFlags name a trained policy and how it makes routes.
type policyFlags struct {
	checkpoint string
	policy     string
	decode     string
}

func (f *policyFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.policy, "policy", "", policyUsage()+"; auto takes the one that fits the problem")
	cmd.Flags().StringVar(&f.checkpoint, "checkpoint", "", "trained policy: a .safetensors file, or a run folder (its best checkpoint)")
	cmd.Flags().StringVar(&f.decode, "decode", "", policy.DecodeUsage+
		fmt.Sprintf(" (default: pomo8 up to %d customers, pomo up to %d, else greedy; pomo8:1 for policies with model.start_views, near the size of their training)",
			policy.MostForPomo8, policy.MostForPomo))
}

// decoder is how a policy of these settings routes a file of n customers; lesser says that a
// smaller one would have been routed more thoroughly. Where a search goes on, one route to begin
// with will do: its time is better spent there.
func (f *policyFlags) decoder(c *config.Config, n int, search bool) (d policy.Decode, lesser bool, err error) {
	switch {
	case f.decode != "":
		d, err = policy.ParseDecode(f.decode)
		return d, false, asUsage(err)
	case search:
		return policy.Greedy, false, nil
	}
	return policy.DecodeFor(c, n), n > policy.MostForPomo8, nil
}

// slowEncoding is the number of customers past which reading a problem takes more than a second by
// itself, for one route too.
const slowEncoding = 2000

// slow says whether routing n customers so takes longer than about a second on two cores.
func slow(d policy.Decode, n int) bool {
	return n > slowEncoding || d.Routes(n)*max(1, d.Beam*d.Expand)*n*n > 8*policy.MostForPomo8*policy.MostForPomo8*policy.MostForPomo8
}

func policyUsage() string {
	return "shipped trained policy by name (see haul policies)"
}

// given says whether a policy was named, and by which flag.
func (f *policyFlags) given() (flag string, ok bool) {
	switch {
	case f.policy != "":
		return "policy", true
	case f.checkpoint != "":
		return "checkpoint", true
	}
	return "", false
}

// fit puts the policy that fits a problem best in the place of "auto".
func (f *policyFlags) fit(p *vrp.Problem) error {
	if f.policy != "auto" {
		return nil
	}
	if f.policy = fittingPolicy(p); f.policy != "" {
		return nil
	}
	why := "none has learned such problems"
	if err := p.Check(); err != nil {
		why = err.Error()
	} else if len(p.X) == 0 {
		why = "it has no coordinates"
	} else if _, err := p.Variant(); err != nil {
		why = err.Error()
	}
	return fmt.Errorf("--policy auto: no shipped policy fits: %s: leave --policy out to search", why)
}

// load reads the checkpoint that is meant, as far as its settings. The path is that of the file
// that was taken.
func (f *policyFlags) load() (path string, ck *run.Checkpoint, err error) {
	switch {
	case f.policy != "" && f.checkpoint != "":
		return "", nil, usagef("--policy and --checkpoint both name a policy: use one of them")
	case f.policy == "":
		return checkpointOf(f.checkpoint)
	}
	ck, err = shippedPolicy(f.policy)
	return f.policy, ck, err
}

// shippedPolicy is a policy of the binary.
func shippedPolicy(name string) (*run.Checkpoint, error) {
	data, err := policies.Read(name)
	if err != nil {
		return nil, asUsage(err)
	}
	return run.Decode(name, "", data)
}

// openPolicy opens the device that is fastest for the policy's own settings, or the one asked for,
// and puts the policy on it.
func (a *app) openPolicy(ctx context.Context, f *policyFlags, d *deviceFlags) (trained *policy.Policy, dev kernel.Device, err error) {
	path, ck, err := f.load()
	if err != nil {
		return nil, nil, err
	}
	if of := ck.Settings.Recipe(); !policy.Is(of) {
		return nil, nil, fmt.Errorf("load checkpoint %s: it holds model %q, not %s", path, of, strings.Join(policy.Models(), " or "))
	}
	r, err := recipe.Find(ck.Settings.Recipe())
	if err != nil {
		return nil, nil, err
	}
	if dev, err = a.openFor(ctx, d, r, ck.Settings); err != nil {
		return nil, nil, err
	}
	if trained, err = policy.New(dev, ck); err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return trained, dev, nil
}

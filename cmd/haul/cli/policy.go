package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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

// FittingPolicy is the policy that takes a problem and was trained on the size nearest to its by
// ratio, of two the one that was trained on fewer kinds; "" where there is none.
func FittingPolicy(p *vrp.Problem) (best string) {
	near := math.Inf(1)
	for _, name := range policies.Names() { // of one size those of plain CVRP first
		ck, err := ShippedPolicy(name)
		if err != nil {
			continue // the list will tell
		}
		c, ok := ck.Settings.(*config.Config)
		if !ok || policy.Takes(c, p) != nil {
			continue
		}
		if d := math.Abs(math.Log(float64(p.N()) / float64(c.Problem.Customers.Nearest(p.N())))); d < near {
			best, near = name, d
		}
	}
	return best
}

// PolicyFlags name a trained policy and how it makes routes.
type PolicyFlags struct {
	Checkpoint string
	Policy     string
	decode     string
}

// Register adds --policy, which takes a shipped policy's name or a checkpoint.
func (f *PolicyFlags) Register(cmd *cobra.Command) {
	cmd.Flags().Var((*policyValue)(f), "policy", "trained policy: a name (haul policies), auto, a run folder or a .safetensors file")
}

// policyValue is a flag's value that names a shipped policy or a checkpoint.
type policyValue PolicyFlags

func (v *policyValue) Type() string   { return "string" }
func (v *policyValue) String() string { return cmp.Or(v.Policy, v.Checkpoint) }

func (v *policyValue) Set(name string) error {
	if Exists(name) || strings.HasSuffix(name, ".safetensors") || strings.ContainsRune(name, '/') {
		v.Checkpoint, v.Policy = name, ""
	} else {
		v.Policy, v.Checkpoint = name, ""
	}
	return nil
}

// SetDecode says how the policy makes routes.
func (f *PolicyFlags) SetDecode(text string) error {
	f.decode = text
	_, err := policy.ParseDecode(text)
	return err
}

// Decoding reports whether it is said how the policy makes routes.
func (f *PolicyFlags) Decoding() bool { return f.decode != "" }

// Decoder is how a policy of these settings routes a file of n customers; lesser says that a
// smaller one would have been routed more thoroughly. Where a search goes on, one route to begin
// with will do: its time is better spent there.
func (f *PolicyFlags) Decoder(c *config.Config, n int, search bool) (d policy.Decode, lesser bool, err error) {
	switch {
	case f.decode != "":
		d, err = policy.ParseDecode(f.decode)
		return d, false, AsUsage(err)
	case search:
		return policy.Greedy, false, nil
	}
	return policy.DecodeFor(c, n), n > policy.MostForPomo8, nil
}

// slowEncoding is the number of customers past which reading a problem takes more than a second by
// itself, for one route too.
const slowEncoding = 2000

// Slow says whether routing n customers so takes longer than about a second on two cores.
func Slow(d policy.Decode, n int) bool {
	return n > slowEncoding || d.Routes(n)*max(1, d.Beam*d.Expand)*n*n > 8*policy.MostForPomo8*policy.MostForPomo8*policy.MostForPomo8
}

func PolicyUsage() string {
	return "shipped trained policy by name (see haul policies)"
}

// Given says whether a policy was named, and by which flag.
func (f *PolicyFlags) Given() (flag string, ok bool) {
	switch {
	case f.Policy != "":
		return "policy", true
	case f.Checkpoint != "":
		return "checkpoint", true
	}
	return "", false
}

// Fit puts the policy that fits a problem best in the place of "auto".
func (f *PolicyFlags) Fit(p *vrp.Problem) error {
	if f.Policy != "auto" {
		return nil
	}
	if f.Policy = FittingPolicy(p); f.Policy != "" {
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

// Load reads the checkpoint that is meant, as far as its settings. The path is that of the file
// that was taken.
func (f *PolicyFlags) Load() (path string, ck *run.Checkpoint, err error) {
	switch {
	case f.Policy != "" && f.Checkpoint != "":
		return "", nil, Usagef("--policy and --checkpoint both name a policy: use one of them")
	case f.Policy == "":
		return CheckpointOf(f.Checkpoint)
	}
	ck, err = ShippedPolicy(f.Policy)
	return f.Policy, ck, err
}

// ShippedPolicy is a policy of the binary.
func ShippedPolicy(name string) (*run.Checkpoint, error) {
	data, err := policies.Read(name)
	if err != nil {
		return nil, AsUsage(err)
	}
	return run.Decode(name, "", data)
}

// OpenPolicy opens the device that is fastest for the policy's own settings, or the one asked for,
// and puts the policy on it.
func (a *App) OpenPolicy(ctx context.Context, f *PolicyFlags, d *DeviceFlags) (trained *policy.Policy, dev kernel.Device, err error) {
	path, ck, err := f.Load()
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
	if dev, err = a.OpenFor(ctx, d, r, ck.Settings); err != nil {
		return nil, nil, err
	}
	if trained, err = policy.New(dev, ck); err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return trained, dev, nil
}

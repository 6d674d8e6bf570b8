package lab

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/recipe"
)

// agentBatches are the batch sizes at which an agent's step is timed.
var agentBatches = []int{128, 256, 512, 1024, 2048}

// timedAgent is an agent whose training step is timed on a device; on the CPU it is small.
type timedAgent struct {
	dev    kernel.Device
	name   string // name of the device
	config string
	sets   []string
}

// agentSizes describes the agents in notes.
const agentSizes = "CPU: ad_dr.yaml with one layer of width 32 and 20 tokens; GPU: ad_dr_compressed.yaml in bf16, histories on the card"

// agents calls f with an agent for each device.
func (e *env) agents(ctx context.Context, f func(a timedAgent) error) error {
	return e.everywhere(ctx, "bf16", func(dev kernel.Device, name string) error {
		if name == "CPU" {
			return f(timedAgent{dev, name, "ad_dr", []string{"tf_n_embd=32", "tf_n_layer=1", "n_transit=20", "train_n_stream=20"}})
		}
		return f(timedAgent{dev, name, "ad_dr_compressed", nil})
	})
}

// step returns the seconds of a training step with a batch of n, as in training, and the number of
// the agent's weights.
func (a timedAgent) step(ctx context.Context, n int) (seconds float64, weights int, err error) {
	c, err := config.LoadAD(a.config, append([]string{fmt.Sprintf("train_batch_size=%d", n)}, a.sets...))
	if err != nil {
		return 0, 0, err
	}
	step, err := recipe.Step(a.dev, c)
	if err != nil {
		return 0, 0, err
	}
	weights = step.Program.Layout.Len
	took, err := race(ctx, stepRounds, replay(step.Runner))
	if err := errors.Join(err, step.Close()); err != nil {
		return 0, 0, err
	}
	return took[0], weights, nil
}

// batchTime times the step at each size.
func batchTime(ctx context.Context, e *env, r *Result) error {
	r.note(agentSizes + "; on report 004's four GPUs 128 and 256 were the batch of each")
	return e.agents(ctx, func(a timedAgent) error { return r.batchOn(ctx, a) })
}

func (r *Result) batchOn(ctx context.Context, a timedAgent) error {
	t, name := map[int]float64{}, a.name
	for _, n := range agentBatches {
		var err error
		if t[n], _, err = a.step(ctx, n); err != nil {
			return err
		}
		r.row("s", t[n], "%s, per iteration, B=%s", name, thousands(int64(n)))
		r.row("s", t[n]/float64(n), "%s, per sample, B=%s", name, thousands(int64(n)))
	}
	sample := func(n int) float64 { return t[n] / float64(n) }
	r.finds(saves("004", "256 samples per GPU instead of 128 are worth 1.5×, a third of a sample's time ("+name+")", 1.0/3, 1.0/3), sample(128)/sample(256))
	r.finds(direction("004", "256 samples per GPU instead of 128 shorten an iteration ("+name+")"), t[128]/t[256])
	r.finds(direction("004", "if still slow, 2,048 instead of 1,024: time per sample ("+name+")"), sample(1024)/sample(2048))
	return nil
}

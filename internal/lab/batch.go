package lab

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	incontext "haul/internal/recipe/agent"
)

// agentBatches are the sizes that an agent's step is timed at.
var agentBatches = []int{128, 256, 512, 1024, 2048}

// batchTime times the step that training replays, on the CPU of an agent that is small enough for it.
func batchTime(ctx context.Context, e *env, r *Result) error {
	small := []string{"tf_n_embd=32", "tf_n_layer=1", "n_transit=20", "train_n_stream=20"}
	r.note("CPU: ad_dr.yaml with one layer of width 32 and 20 tokens; GPU: ad_dr_compressed.yaml in bf16, histories on the card; on report 004's four GPUs 128 and 256 were the batch of each")
	return e.everywhere(ctx, "bf16", func(dev kernel.Device, name string) error {
		if name == "CPU" {
			return r.batchOn(ctx, dev, name, "ad_dr", small)
		}
		return r.batchOn(ctx, dev, name, "ad_dr_compressed", nil)
	})
}

func (r *Result) batchOn(ctx context.Context, dev kernel.Device, name, file string, sets []string) error {
	t := map[int]float64{}
	for _, n := range agentBatches {
		c, err := config.LoadAD(file, append([]string{fmt.Sprintf("train_batch_size=%d", n)}, sets...))
		if err != nil {
			return err
		}
		step, err := incontext.CompileStep(dev, c, nil)
		if err != nil {
			return err
		}
		took, err := race(ctx, stepRounds, replay(step.Runner))
		if err := errors.Join(err, step.Close()); err != nil {
			return err
		}
		t[n] = took[0]
		r.row("s", t[n], "%s, per iteration, B=%s", name, thousands(int64(n)))
		r.row("s", t[n]/float64(n), "%s, per sample, B=%s", name, thousands(int64(n)))
	}
	sample := func(n int) float64 { return t[n] / float64(n) }
	r.finds(saves("004", "256 samples per GPU instead of 128 are worth 1.5×, a third of a sample's time ("+name+")", 1.0/3, 1.0/3), sample(128)/sample(256))
	r.finds(direction("004", "256 samples per GPU instead of 128 shorten an iteration ("+name+")"), t[128]/t[256])
	r.finds(direction("004", "if still slow, 2,048 instead of 1,024: time per sample ("+name+")"), sample(1024)/sample(2048))
	return nil
}

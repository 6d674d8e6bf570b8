package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	incontext "haul/internal/recipe/agent"
)

// rankCount is the GPUs of report 004.
const rankCount = 4

// ranks asks what four that share an iteration gain and what it costs them: a share of the rows each, and the exchange of gradients, which the
// report does not speak of. The exchange is the fixed-order sum between four ranks in one memory: what any link adds comes on top.
func ranks(ctx context.Context, e *env, r *Result) error {
	small := []string{"tf_n_embd=32", "tf_n_layer=1", "n_transit=20", "train_n_stream=20"}
	r.note("CPU: ad_dr.yaml with one layer of width 32 and 20 tokens; GPU: ad_dr_compressed.yaml in bf16, histories on the card; one device runs a rank's share, the exchange is four goroutines in host memory")
	return e.everywhere(ctx, "bf16", func(dev kernel.Device, name string) error {
		if name == "CPU" {
			return r.ranksOn(ctx, dev, name, "ad_dr", small)
		}
		return r.ranksOn(ctx, dev, name, "ad_dr_compressed", nil)
	})
}

func (r *Result) ranksOn(ctx context.Context, dev kernel.Device, name, file string, sets []string) error {
	t := map[int]float64{}
	length := 0
	for _, n := range []int{512, 512 / rankCount} {
		c, err := config.LoadAD(file, append([]string{fmt.Sprintf("train_batch_size=%d", n)}, sets...))
		if err != nil {
			return err
		}
		step, err := incontext.CompileStep(dev, c, nil)
		if err != nil {
			return err
		}
		length = step.Program.Layout.Len
		took, err := race(ctx, stepRounds, replay(step.Runner))
		if err := errors.Join(err, step.Runner.Close()); err != nil {
			return err
		}
		t[n] = took[0]
		r.row("s", t[n], "%s, an iteration of %d samples", name, n)
	}
	exchange, err := raceExchange(ctx, length)
	if err != nil {
		return err
	}
	r.row("s", exchange, "%s's model, gradients of %.2f MB exchanged between four", name, 4*float64(length)/1e6)
	share := t[512/rankCount] + exchange
	r.row("×", t[512]/share, "%s, four that share 512 samples against one with all", name)
	r.row("%", 100*t[512]/share/rankCount, "%s, of what four could do", name)
	r.finds(takes("004", "7 s an iteration on four GPUs: what four add to one, the exchange of gradients ("+name+")", slowIteration), exchange)
	r.finds(direction("004", "128 samples each for four GPUs, 512 in all, is faster than one GPU with 512 ("+name+")"), t[512]/share)
	return nil
}

// raceExchange times the sum of four gradients of that length.
func raceExchange(ctx context.Context, length int) (float64, error) {
	worlds := comm.Local(rankCount)
	grads := make([][]float32, rankCount)
	for i := range grads {
		grads[i] = make([]float32, length)
	}
	var mu sync.Mutex
	var failed error
	took, err := race(ctx, stepRounds, plain(func() {
		var all sync.WaitGroup
		for i, w := range worlds {
			all.Go(func() {
				if err := w.Exchange(grads[i]); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}))
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return took[0], nil
}

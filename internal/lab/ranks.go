package lab

import (
	"context"
	"errors"
	"sync"

	"haul/internal/comm"
)

// rankCount is the number of GPUs in report 004.
const rankCount = 4

// ranks measures what four ranks gain if each computes a quarter of the rows, and what the exchange
// of gradients costs, which the report does not mention. The exchange is the fixed-order sum of
// four ranks in one memory; a network would add to it.
func ranks(ctx context.Context, e *env, r *Result) error {
	r.note(agentSizes + "; one device runs a rank's share, the exchange is four goroutines in host memory")
	return e.agents(ctx, func(a timedAgent) error { return r.ranksOn(ctx, a) })
}

func (r *Result) ranksOn(ctx context.Context, a timedAgent) error {
	t, name := map[int]float64{}, a.name
	length := 0
	for _, n := range []int{512, 512 / rankCount} {
		var err error
		if t[n], length, err = a.step(ctx, n); err != nil {
			return err
		}
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
	r.finds(takes("004", "7 s per iteration on four GPUs: what four add to one, the exchange of gradients ("+name+")", slowIteration), exchange)
	r.finds(direction("004", "128 samples each for four GPUs, 512 in all, is faster than one GPU with 512 ("+name+")"), t[512]/share)
	return nil
}

// raceExchange returns the seconds of a sum of four gradients of that length.
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

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haul/internal/kernel"
)

// Step is a compiled training step with the settings' initial weights, for measurements without
// training.
type Step struct {
	Runner  kernel.Runner
	Stores  []kernel.Store // closed with the step
	Program *kernel.Program
	RateKey string // key of the learning rate
	// Work returns the operations of the steps that the metrics cover, by formula.
	Work func(kernel.Metrics) int64
	// Descriptions of a row of the batch.
	Rows   string // "instances"
	Shape  string // "128 instances of 10 customers per step, rollout baseline"
	Tokens int    // number per row; 0: rows have no tokens
	Facts  map[string]any
}

// FLOPs returns the operations of the steps since the last call, by formula from the model and, if
// they vary, the lengths of the rows. It waits for the device.
func (s *Step) FLOPs() (int64, error) {
	m, err := s.Runner.TakeMetrics()
	if err == nil && m.BadStep != 0 {
		err = fmt.Errorf("the gradient of step %d is not finite: try a lower %s", m.BadStep, s.RateKey)
	}
	return s.Work(m), err
}

// Close frees the runner and the stores.
func (s *Step) Close() error { return errors.Join(s.Runner.Close(), CloseStores(s.Stores...)) }

// CloseStores closes all stores that are not nil.
func CloseStores(stores ...kernel.Store) error {
	var errs []error
	for _, s := range stores {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Trial returns the duration of a step, over a few steps, and closes the step. The choice between
// devices uses it.
func (s *Step) Trial(ctx context.Context) (seconds float64, err error) {
	defer func() { err = errors.Join(err, s.Close()) }()
	steps := func(most int, enough time.Duration) (n int, began time.Time, err error) {
		for began = time.Now(); n < most && time.Since(began) < enough; n++ {
			if err := Replay(ctx, s.Runner); err != nil {
				return n, began, err
			}
		}
		_, err = s.FLOPs() // waits for the device
		return n, began, err
	}
	if _, _, err := steps(2, time.Hour); err != nil { // warm-up
		return 0, err
	}
	n, began, err := steps(20, 300*time.Millisecond)
	return time.Since(began).Seconds() / float64(n), err
}

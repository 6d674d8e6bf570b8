package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haul/internal/kernel"
)

// Step is a training step, compiled and ready to replay from the settings' initial weights, for
// measuring steps without training.
type Step struct {
	Runner  kernel.Runner
	Stores  []kernel.Store // of the step alone
	Program *kernel.Program
	RateKey string // of the learning rate
	// Work is the operations of the steps that the metrics are of, by formula.
	Work func(kernel.Metrics) int64
	// What a row of the batch is, in words, and what JSON says of it.
	Rows   string // "instances"
	Shape  string // "128 instances of 10 customers per step, rollout baseline"
	Tokens int    // of a row, where it has any
	Facts  map[string]any
}

// FLOPs takes the metrics and returns the work of the steps since they were last taken, by formula
// from the model and, where they vary, the lengths that were drawn.
func (s *Step) FLOPs() (int64, error) {
	m, err := s.Runner.TakeMetrics()
	if err == nil && m.BadStep != 0 {
		err = fmt.Errorf("the gradient of step %d is not finite: try a lower %s", m.BadStep, s.RateKey)
	}
	return s.Work(m), err
}

// Close gives back all that the step holds.
func (s *Step) Close() error { return errors.Join(s.Runner.Close(), CloseStores(s.Stores...)) }

// CloseStores closes stores, of which some may be nil.
func CloseStores(stores ...kernel.Store) error {
	var errs []error
	for _, s := range stores {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Trial times a few steps, and closes them: what choosing between devices goes by.
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
	if _, _, err := steps(2, time.Hour); err != nil { // warm
		return 0, err
	}
	n, began, err := steps(20, 300*time.Millisecond)
	return time.Since(began).Seconds() / float64(n), err
}

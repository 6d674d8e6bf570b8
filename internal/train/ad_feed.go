package train

import (
	"context"
	"errors"

	"haul/internal/kernel"
	"haul/internal/loader"
)

// feed drives a program whose rows come from the host. One batch is on its way to the device while the one before it is given back. All
// of it belongs to the goroutine that drives the device.
type feed struct {
	feeder kernel.Feeder
	source *loader.Loader
	held   *kernel.Slab // fed, and not known to be read
}

// newFeed reserves slabs and starts filling them with the rows from index `first` on.
func newFeed(r kernel.Runner, p *adProgram, l *lessons, first uint64, workers, ahead int) (*feed, error) {
	feeder, ok := r.(kernel.Feeder)
	if !ok {
		return nil, errors.New("this device takes no rows from the host: use --data device")
	}
	slabs, err := feeder.NewSlabs(p.fed(), ahead+2) // beside those ahead: one on its way, one that the device reads
	if err != nil {
		return nil, err
	}
	source, err := loader.New(loader.Options{Spec: l.trainSpec, History: l.train, Batch: p.plan.Batch(), Slabs: slabs, Workers: workers, Depth: ahead, From: first})
	if err != nil {
		return nil, err
	}
	return &feed{feeder: feeder, source: source}, nil
}

// run feeds one step.
func (f *feed) run(ctx context.Context) error {
	s, err := f.source.Next(ctx)
	if err != nil {
		return err
	}
	if err := f.feeder.Feed(s); err != nil {
		return err
	}
	if f.held != nil {
		if err := f.feeder.Taken(f.held); err != nil {
			return err
		}
		f.source.Return(f.held)
	}
	f.held = s
	return nil
}

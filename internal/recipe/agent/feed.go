package agent

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/kernel"
	"haul/internal/loader"
	"haul/internal/run"
)

// feed drives a program whose rows come from the host. It uploads one batch while the previous one
// is still in use. Only the goroutine that drives the device may use it.
type feed struct {
	feeder kernel.Feeder
	source *loader.Loader
	held   *kernel.Slab // uploaded, and possibly still being read
}

// newFeed allocates slabs and starts to fill them with the rows from index `first` on.
func newFeed(r kernel.Runner, p *program, l *dataset, first uint64, workers, ahead int) (*feed, error) {
	feeder, ok := r.(kernel.Feeder)
	if !ok {
		return nil, errors.New("this device takes no rows from the host: use --data device")
	}
	slabs := ahead + 2 // also one in transfer and one in use
	if err := run.FitsHost(keyBatch, "the host", fmt.Sprintf("making rows %d batches ahead", ahead), p.plan.Batch(), int64(slabs)*slabBytes(p)); err != nil {
		return nil, err
	}
	reserved, err := feeder.NewSlabs(p.fed(), slabs)
	if err != nil {
		return nil, err
	}
	fill, err := l.fill()
	if err != nil {
		return nil, err
	}
	prog := p.plan.Program()
	source, err := loader.New(loader.Options{Fill: fill, Row: l.trainSpec.Words(), Batch: p.plan.Batch(), Slabs: reserved, Workers: workers, Depth: ahead,
		From: first + uint64(prog.First()), Stride: prog.Total()})
	if err != nil {
		return nil, err
	}
	return &feed{feeder: feeder, source: source}, nil
}

// slabBytes returns the size of one batch of rows in bytes.
func slabBytes(p *program) (n int64) {
	for _, t := range p.fed() {
		n += 4 * int64(t.Len()) * int64(p.plan.Program().Shards())
	}
	return n
}

// run uploads a batch and runs one step.
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

package runtest

import (
	"errors"
	"testing"

	"haul/internal/kernel"
	"haul/internal/run"
)

// Stores is a device that counts the weight sets which are not closed yet.
type Stores struct {
	kernel.Device
	Open, Made int
}

type countedStore struct {
	kernel.Store
	c      *Stores
	closed bool
}

// NewStore counts a store.
func (c *Stores) NewStore(l *kernel.Layout, train bool) (kernel.Store, error) {
	s, err := c.Device.NewStore(l, train)
	if err != nil {
		return nil, err
	}
	c.Open++
	c.Made++
	return &countedStore{Store: s, c: c}, nil
}

// Compile passes the device's own stores to the device.
func (c *Stores) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	own := make([]kernel.Store, len(sets))
	for i, s := range sets {
		own[i] = s.(*countedStore).Store
	}
	return c.Device.Compile(p, own)
}

func (s *countedStore) CopyWeights(from kernel.Store) error {
	return s.Store.CopyWeights(from.(*countedStore).Store)
}

func (s *countedStore) Close() error {
	if s.closed {
		return errors.New("a store is closed twice")
	}
	s.closed = true
	s.c.Open--
	return s.Store.Close()
}

// stores: all stores are closed. A store that stays open holds GPU memory until the process ends; a
// trial of `auto` would then leave too little memory for the run.
func (c Case) stores(t *testing.T) {
	dev := &Stores{Device: c.Device(t, 1)}
	step, err := c.Recipe.Step(dev, c.Settings)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the recipe has no step of its own to time")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := step.Trial(t.Context()); err != nil {
		t.Fatal(err)
	}
	if dev.Made == 0 || dev.Open != 0 {
		t.Errorf("a trial leaves %d of %d stores open", dev.Open, dev.Made)
	}
	o := c.options(t, c.Settings, dev)
	o.Dir = OpenDir(t, Folder(t), false)
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if dev.Open != 0 {
		t.Errorf("a run leaves %d of %d stores open", dev.Open, dev.Made)
	}
}

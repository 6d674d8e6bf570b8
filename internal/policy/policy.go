// Package policy is a trained routing network at work: it reads checkpoints, feeds problems to
// the network, decodes routes, does beam search and routes many problems at once.
// internal/recipe/routing does the training.
//
// What a reader could break: files stand in an order, and none uses what is above it. The order
// is in internal/lint/files_test.go.
package policy

import (
	"errors"
	"fmt"
	"strings"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/vrp"
)

// Policy is a trained model on a device, ready to route.
type Policy struct {
	Config *config.Config // what it was trained with
	Epoch  int            // finished epochs
	// of the routes that Prepare's programs draw: the run's unless it is set before
	Seed  uint64
	dev   kernel.Device
	model *model.Network
	store kernel.Store
}

// Load reads a checkpoint's policy onto a device.
func Load(dev kernel.Device, path string) (*Policy, error) { return LoadShared(nil, dev, path) }

// LoadShared is Load for all ranks at once.
func LoadShared(w *comm.World, dev kernel.Device, path string) (*Policy, error) {
	ck, err := run.LoadShared(w, path, "")
	if err != nil {
		return nil, err
	}
	return New(dev, ck)
}

// New puts the policy of a routing checkpoint onto a device.
func New(dev kernel.Device, ck *run.Checkpoint) (*Policy, error) {
	c, m, err := networkOf(ck)
	if err != nil {
		return nil, err
	}
	weights, err := ck.Weights(m.Layout(), "")
	if err != nil {
		return nil, err
	}
	store, err := run.NewStore(dev, m.Layout(), false)
	if err != nil {
		return nil, err
	}
	if err := store.WriteWeights(weights); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Policy{Config: c, Epoch: ck.Progress.Concluded / c.Training.NumBatchesPerEpoch, Seed: c.Experiment.RandomSeed, dev: dev, model: m, store: store}, nil
}

// networkOf is the network of a routing checkpoint.
func networkOf(ck *run.Checkpoint) (*config.Config, *model.Network, error) {
	c, ok := ck.Settings.(*config.Config)
	if !ok {
		return nil, nil, fmt.Errorf("load checkpoint %s: it holds model %q, not %s", ck.Path, ck.Settings.Recipe(), strings.Join(Models(), " or "))
	}
	m, err := NewNetwork(c)
	return c, m, err
}

// Close takes the policy off its device.
func (p *Policy) Close() error { return p.store.Close() }

// Parameters is the number of learned numbers.
func (p *Policy) Parameters() int { return p.model.Layout().Count() }

// Source is where instances like those it was trained on come from.
func (p *Policy) Source(purpose rng.Purpose) vrp.Source { return SourceOf(p.Config, purpose) }

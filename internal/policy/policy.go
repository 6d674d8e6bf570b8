// Package policy routes with a trained network: it loads checkpoints, passes problems to the
// network, decodes routes, runs beam and active search, and routes many problems at once. The
// commands solve, eval and serve call it, and internal/recipe/routing calls it for validation.
//
// Its files have an order, which internal/lint/files_test.go lists: a file uses only files that are
// below it.
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
	Config *config.Config // the settings of its training
	Epoch  int            // completed epochs of training
	// seed of routes that programs of Prepare sample: the seed of the run unless it is set before
	Seed  uint64
	dev   kernel.Device
	model *model.Network
	store kernel.Store
}

// Load loads the policy of a checkpoint file into a device.
func Load(dev kernel.Device, path string) (*Policy, error) { return LoadShared(nil, dev, path) }

// LoadShared is Load on all ranks at once.
func LoadShared(w *comm.World, dev kernel.Device, path string) (*Policy, error) {
	ck, err := run.LoadShared(w, path, "")
	if err != nil {
		return nil, err
	}
	return New(dev, ck)
}

// New loads the policy of a routing checkpoint into a device.
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

// networkOf returns the settings and the network of a routing checkpoint.
func networkOf(ck *run.Checkpoint) (*config.Config, *model.Network, error) {
	c, ok := ck.Settings.(*config.Config)
	if !ok {
		return nil, nil, fmt.Errorf("load checkpoint %s: it holds model %q, not %s", ck.Path, ck.Settings.Recipe(), strings.Join(Models(), " or "))
	}
	m, err := NewNetwork(c)
	return c, m, err
}

// Close frees the weights on the device.
func (p *Policy) Close() error { return p.store.Close() }

// Parameters returns the number of weights.
func (p *Policy) Parameters() int { return p.model.Layout().Count() }

// Source returns the source of instances like those of training.
func (p *Policy) Source(purpose rng.Purpose) vrp.Source { return SourceOf(p.Config, purpose) }

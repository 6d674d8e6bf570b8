package routing

import (
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/run"
	"haul/internal/safetensors"
)

// PolicyInfo is what a checkpoint tells of its policy.
type PolicyInfo struct {
	Customers    int       `json:"customers"` // of the problems that it was trained on
	Capacity     int       `json:"capacity"`
	Distribution string    `json:"distribution"`
	Layers       int       `json:"layers"`
	Width        int       `json:"width"`
	Parameters   int       `json:"parameters"`
	Decode       string    `json:"decode"`    // of a problem of that size, where nobody says how
	Updates      int       `json:"updates"`   // of all runs that made its weights, as far as the file knows them
	Instances    int       `json:"instances"` // of those
	Settings     string    `json:"settings"`  // the name of the last run's
	Seconds      float64   `json:"train_seconds"`
	Runs         []PastRun `json:"runs"` // the first first; each later one began with the weights of the one before
}

// PastRun is one of the runs that made a policy.
type PastRun struct {
	Settings  string  `json:"settings"`
	Updates   int     `json:"updates"`
	Instances int     `json:"instances"`
	Seconds   float64 `json:"train_seconds"`
}

// Describe reads a routing checkpoint's settings.
func Describe(ck *run.Checkpoint) (*PolicyInfo, error) {
	c, m, err := modelOf(ck)
	if err != nil {
		return nil, err
	}
	info := &PolicyInfo{Customers: c.Problem.NumCustomers, Capacity: c.Problem.VehicleCapacity, Distribution: c.Problem.Distribution, Layers: c.Model.NumLayers,
		Width: c.Model.HiddenDim, Parameters: m.Layout().Count(), Decode: DecodeFor(c, c.Problem.NumCustomers).String(), Settings: c.Title()}
	for _, p := range ck.Chain(Recipe{}) {
		info.Runs = append(info.Runs, PastRun{Settings: p.Settings, Updates: p.Updates, Instances: p.Rows, Seconds: p.Seconds})
		info.Updates += p.Updates
		info.Instances += p.Rows
		info.Seconds += p.Seconds
	}
	return info, nil
}

// modelOf is the network of a routing checkpoint.
func modelOf(ck *run.Checkpoint) (*config.Config, *model.GT, error) {
	c, ok := ck.Settings.(*config.Config)
	if !ok {
		return nil, nil, fmt.Errorf("load checkpoint %s: it holds model %q, not %s", ck.Path, ck.Settings.Recipe(), Name)
	}
	m, err := newModel(c)
	return c, m, err
}

// policyWeights are what a checkpoint's policy routes with.
func policyWeights(ck *run.Checkpoint, l *kernel.Layout) ([]float32, error) { return ck.Weights(l, "") }

// Pack is a checkpoint with nothing but what routing needs: settings, and weights as F32 or BF16.
func Pack(ck *run.Checkpoint, as safetensors.DType) (*safetensors.File, error) {
	_, m, err := modelOf(ck)
	if err != nil {
		return nil, err
	}
	l := m.Layout()
	flat, err := policyWeights(ck, l)
	if err != nil {
		return nil, err
	}
	f := &safetensors.File{Metadata: ck.Bare()}
	for _, p := range l.Params {
		v := flat[p.Offset:][:p.Len()]
		t := safetensors.Float32s(p.Name, v, p.Shape...)
		if as == safetensors.BF16 {
			t = safetensors.BFloat16s(p.Name, v, p.Shape...)
		}
		f.Tensors = append(f.Tensors, t)
	}
	return f, nil
}

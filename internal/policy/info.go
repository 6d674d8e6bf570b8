package policy

import "haul/internal/run"

// Info is what a checkpoint says about its policy.
type Info struct {
	Customers    int       `json:"customers"` // of the problems that it was trained on
	Capacity     int       `json:"capacity"`
	Distribution string    `json:"distribution"`
	Variants     []string  `json:"variants"` // the kinds of problems that it has learned, as RouteFinder names them
	Layers       int       `json:"layers"`
	Width        int       `json:"width"`
	Parameters   int       `json:"parameters"`
	Decode       string    `json:"decode"`    // default for a problem of that size
	Updates      int       `json:"updates"`   // of all runs that made its weights, as far as the file knows them
	Instances    int       `json:"instances"` // of those
	Settings     string    `json:"settings"`  // the name of the last run's
	Seconds      float64   `json:"train_seconds"`
	Runs         []PastRun `json:"runs"` // oldest first; each later one began with the weights of the one before
}

// PastRun is one of the runs that made a policy.
type PastRun struct {
	Settings  string  `json:"settings"`
	Updates   int     `json:"updates"`
	Instances int     `json:"instances"`
	Seconds   float64 `json:"train_seconds"`
}

// Describe reads a routing checkpoint's settings.
func Describe(ck *run.Checkpoint) (*Info, error) {
	c, m, err := networkOf(ck)
	if err != nil {
		return nil, err
	}
	info := &Info{Customers: c.Problem.NumCustomers(), Capacity: c.Problem.VehicleCapacity, Distribution: c.Problem.Distribution, Layers: c.Model.NumLayers,
		Width: c.Model.HiddenDim, Variants: variantsOf(SourceOf(c, 0)), Parameters: m.Layout().Count(), Decode: DecodeFor(c, c.Problem.NumCustomers()).String(), Settings: c.Title()}
	for _, p := range ck.Chain(c.Training.BatchSize) {
		info.Runs = append(info.Runs, PastRun{Settings: p.Settings, Updates: p.Updates, Instances: p.Rows, Seconds: p.Seconds})
		info.Updates += p.Updates
		info.Instances += p.Rows
		info.Seconds += p.Seconds
	}
	return info, nil
}

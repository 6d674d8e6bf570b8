package policy

import "haul/internal/run"

// Info describes the policy of a checkpoint.
type Info struct {
	Customers    int       `json:"customers"` // of the training problems
	Capacity     int       `json:"capacity"`
	Distribution string    `json:"distribution"`
	Variants     []string  `json:"variants"` // variants in training, by RouteFinder's names
	Layers       int       `json:"layers"`
	Width        int       `json:"width"`
	Parameters   int       `json:"parameters"`
	Decode       string    `json:"decode"`    // default decoder for problems of that size
	Updates      int       `json:"updates"`   // of all runs that the file lists
	Instances    int       `json:"instances"` // training instances in these updates
	Settings     string    `json:"settings"`  // name of the last run's settings
	Seconds      float64   `json:"train_seconds"`
	Runs         []PastRun `json:"runs"` // oldest first; each run began with the weights of the previous one
}

// PastRun describes a run that trained a policy.
type PastRun struct {
	Settings  string  `json:"settings"`
	Updates   int     `json:"updates"`
	Instances int     `json:"instances"`
	Seconds   float64 `json:"train_seconds"`
}

// Describe returns the Info of a routing checkpoint.
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

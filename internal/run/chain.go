package run

// A run that begins with the weights of a checkpoint stores the chain of runs behind them: that
// checkpoint's chain and then its own run. Its own updates are in Updates and Elapsed only, so that
// each run counts once.

// Past describes an earlier run whose weights a run began with, directly or through later runs.
type Past struct {
	Settings string  `json:"settings"` // name of its settings
	Updates  int     `json:"updates"`  // up to the weights that were taken over
	Rows     int     `json:"rows"`     // instances, sequences or steps in these updates, as the recipe counts
	Seconds  float64 `json:"seconds"`
}

// Own describes the checkpoint's own run, without earlier runs. An update uses `rows` rows.
func (c *Checkpoint) Own(rows int) Past {
	p := &c.Progress
	return Past{Settings: c.Settings.Title(), Updates: p.Updates, Rows: p.Updates * rows, Seconds: p.Elapsed}
}

// Chain returns all runs that led to a checkpoint's weights, oldest first. Its own run is the last.
func (c *Checkpoint) Chain(rows int) []Past {
	return append(append([]Past(nil), c.Progress.Began...), c.Own(rows))
}

package run

// What a reader could break: a chain of runs is counted once. A run that starts from weights
// takes over the chain of their checkpoint and appends that checkpoint's own run. Its own part
// stays in Updates and Elapsed, so that nothing is counted twice.

// Past is a run whose weights another one began with, directly or through runs between them.
type Past struct {
	Settings string  `json:"settings"` // their name
	Updates  int     `json:"updates"`  // behind the weights that were taken over
	Rows     int     `json:"rows"`     // that those learned from: instances, sequences or steps, as the recipe counts
	Seconds  float64 `json:"seconds"`
}

// Own is the checkpoint's own run, without those before it. An update of it learned from that many
// rows.
func (c *Checkpoint) Own(rows int) Past {
	p := &c.Progress
	return Past{Settings: c.Settings.Title(), Updates: p.Updates, Rows: p.Updates * rows, Seconds: p.Elapsed}
}

// Chain is all runs that made a checkpoint's weights, the first first and its own last.
func (c *Checkpoint) Chain(rows int) []Past {
	return append(append([]Past(nil), c.Progress.Began...), c.Own(rows))
}

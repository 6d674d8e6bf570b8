package analysis

// Release frees the data that the comparison of a job's ranks does not need. The rest remains: the
// steps, the collectives, the idle time with its causes, the first GPU's gaps, Python's frames, the
// time of each operator, the excess of slow kernels and, without a GPU, the main thread's
// operators.
func (a *Analysis) Release() {
	a.Pace()
	a.Spikes()
	keep := a.Main
	if len(a.Devices) > 0 {
		keep = nil
	}
	for i := range a.Held { // a pointer into a list keeps the list
		a.Held[i].Op, a.Held[i].call = nil, nil
	}
	a.links, a.InPython, a.Long, a.Loose = links{}, nil, nil, nil
	for i, d := range a.Devices {
		d.Works = nil
		if i > 0 {
			d.Gaps = nil
		}
	}
	a.Comm.Issued, a.Comm.ExposedSpans, a.Comm.exposedOn, a.Comm.Families = nil, nil, nil, nil
	a.Trace.Release(keep)
}

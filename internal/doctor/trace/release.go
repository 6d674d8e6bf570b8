package trace

// Release lets go of the events that only rules and pages read, and of every thread's operators but
// those of the one that is kept, nil for none. Names, frames and what the job tells of itself stay.
func (t *Trace) Release(keep *Thread) {
	t.GPU, t.Memory, t.Aimed, t.Notes = log[Work]{}, log[Alloc]{}, log[aim]{}, nil
	for _, th := range t.Threads {
		th.Calls, th.Inner = log[Call]{}, log[Inner]{}
		if th != keep {
			th.Ops = log[Op]{}
		}
	}
	if keep == nil {
		t.Forms = nil
	}
}

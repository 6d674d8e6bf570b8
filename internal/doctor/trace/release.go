package trace

// Release frees the events that only rules and pages read, and the operators of all threads except
// keep (nil: of all threads). Names, frames and information on the job remain.
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

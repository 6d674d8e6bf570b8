package report

// Release frees the events, which are most of a report's memory. JoinRanks, Compare and the text do
// not need them. The page does, so it can no longer be written.
func (r *Report) Release() {
	if r.released {
		return
	}
	r.kernels, r.released = r.kernelTimes(), true
	for i := range r.Findings {
		r.Findings[i].Places = nil
	}
	r.a.Release()
}

package report

// Release frees the events, which are most of a report's memory: JoinRanks, Compare and the text
// need none of them. The page needs them, and cannot be written any more.
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

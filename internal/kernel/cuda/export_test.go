package cuda

// TryAll has rule sets served whose kernels have not run on a card, until restore is called.
func TryAll() (restore func()) {
	before := untried
	untried = nil
	return func() { untried = before }
}

// SetTeams has starts followed by teams of this size alone, until restore is called.
func SetTeams(size int) (restore func()) {
	before := startsTeams
	startsTeams = []int{size}
	return func() { startsTeams = before }
}

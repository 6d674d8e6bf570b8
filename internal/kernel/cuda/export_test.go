package cuda

// SetTeams has starts followed by teams of this size alone, until restore is called.
func SetTeams(size int) (restore func()) {
	before := startsTeams
	startsTeams = []int{size}
	return func() { startsTeams = before }
}

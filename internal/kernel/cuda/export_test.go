package cuda

// SetTeams has starts followed by teams of this size alone, until restore is called.
func SetTeams(size int) (restore func()) {
	before := startsTeams
	startsTeams = []int{size}
	return func() { startsTeams = before }
}

// SetStreamed has rows of bf16 attention streamed from so many tokens on, until restore is called.
func SetStreamed(tokens int) (restore func()) {
	before, beforeGrad := longFrom, longGradFrom
	longFrom, longGradFrom = tokens, tokens
	return func() { longFrom, longGradFrom = before, beforeGrad }
}

// SetLongBlocks has a head's keys shared out among so many of the gradient's blocks for every
// multiprocessor, 0 among none, until restore is called.
func SetLongBlocks(blocks int) (restore func()) {
	before := longBlocks
	longBlocks = blocks
	return func() { longBlocks = before }
}

// SetPipedRate has kernels of its own for another rate of dropout, 0 for none, until restore is
// called.
func SetPipedRate(rate uint32) (restore func()) {
	before := pipedRate
	pipedRate = rate
	return func() { pipedRate = before }
}

// SetHeadPiece has instances cut into pieces of at least so many rows by the pass that ends a
// network, until restore is called.
func SetHeadPiece(rows int) (restore func()) {
	before := headPiece
	headPiece = rows
	return func() { headPiece = before }
}

// SetBatchParts has joined layers done in so many parts of the batch, until restore is called.
func SetBatchParts(parts int) (restore func()) {
	before := batchParts
	batchParts = parts
	return func() { batchParts = before }
}

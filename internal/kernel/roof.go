package kernel

// Roof is the most that a device was seen to do, all its workers together. No op passes both sides
// of it: one bounds arithmetic, the other the movement of data.
type Roof struct {
	FLOPs float64 // operations a second, in the precision of the device's matrix products
	Bytes float64 // bytes per second, read and written, in a working set of the size asked for
}

// Roofed is a device that can measure its roof.
type Roofed interface {
	// Roof takes a fraction of a second. workingSet is in bytes, for each worker.
	Roof(workingSet int) (Roof, error)
}

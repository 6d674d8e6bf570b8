package kernel

// Roof is the measured limit of a device, all its workers together: of arithmetic and of the
// movement of data. No op exceeds either.
type Roof struct {
	FLOPs float64 // operations a second, in the precision of the device's matrix products
	Bytes float64 // bytes per second, read and written, in a working set of the size asked for
}

// Roofed is a device that can measure its roof.
type Roofed interface {
	// Roof takes a fraction of a second. workingSet is in bytes, for each worker.
	Roof(workingSet int) (Roof, error)
}

package isa

// What the checks of every set ask of slices, before memory is touched without one.

const shapeMessage = "kernel/cpu: a slice is too short for the shape it was passed with"

func Fits(ok bool) {
	if !ok {
		panic(shapeMessage)
	}
}

// atLeast says that every slice holds n floats.
func atLeast(n int, slices ...[]float32) bool {
	for _, s := range slices {
		if len(s) < n {
			return false
		}
	}
	return n >= 0
}

// spans says that s holds rows of n floats, ld apart, the last one cut at n.
func spans(s []float32, rows, n, ld int) bool {
	return rows >= 0 && n >= 0 && ld >= 0 && (rows == 0 || len(s) >= (rows-1)*ld+n)
}

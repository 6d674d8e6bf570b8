//go:build !race

package isatest

// Raced: the detector is off.
const Raced = false

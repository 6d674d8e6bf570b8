//go:build race

package isatest

// Raced: the detector is on.
const Raced = true

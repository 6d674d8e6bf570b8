//go:build race

package cpu

// raced: the detector is on.
const raced = true

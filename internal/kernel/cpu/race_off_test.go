//go:build !race

package cpu

// raced: the detector is off.
const raced = false

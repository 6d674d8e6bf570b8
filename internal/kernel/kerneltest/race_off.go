//go:build !race

package kerneltest

// raced: the race detector is off.
const raced = false

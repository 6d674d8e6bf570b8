//go:build race

package kerneltest

// raced: the race detector is on.
const raced = true

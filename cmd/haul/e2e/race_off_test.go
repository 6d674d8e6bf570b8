//go:build !race

package e2e

// raced says that the tests, and so the program, run under the race detector.
const raced = false

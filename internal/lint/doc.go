// Package lint holds the tests that keep the house in order: which package may import which.
// It has no code of its own.
package lint

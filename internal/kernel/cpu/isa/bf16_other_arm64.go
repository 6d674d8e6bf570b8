//go:build arm64 && !linux && !darwin

package isa

// hasBFMMLA: other systems are not asked.
func hasBFMMLA() bool { return false }

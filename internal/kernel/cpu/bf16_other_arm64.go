//go:build arm64 && !linux && !darwin

package cpu

// hasBFMMLA: other systems are not asked.
func hasBFMMLA() bool { return false }

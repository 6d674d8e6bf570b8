//go:build !linux

package runtest

// Memory does nothing on this system.
func Memory() (done func()) { return func() {} }

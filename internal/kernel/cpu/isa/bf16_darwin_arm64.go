package isa

import "golang.org/x/sys/unix"

// hasBFMMLA asks the system whether the processor multiplies matrices of bf16.
func hasBFMMLA() bool {
	n, err := unix.SysctlUint32("hw.optional.arm.FEAT_BF16")
	return err == nil && n == 1
}

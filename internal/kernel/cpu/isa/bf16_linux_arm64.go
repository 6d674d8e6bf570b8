package isa

import "golang.org/x/sys/unix"

// hasBFMMLA asks the kernel's word of capabilities whether the processor multiplies matrices of
// bf16. A kernel that does not hand it over has none.
func hasBFMMLA() bool {
	const capabilities2, bf16 = 26, 1 << 14 // AT_HWCAP2, HWCAP2_BF16
	words, err := unix.Auxv()
	if err != nil {
		return false
	}
	for _, w := range words {
		if w[0] == capabilities2 {
			return w[1]&bf16 != 0
		}
	}
	return false
}

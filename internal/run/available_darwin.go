package run

import "golang.org/x/sys/unix"

// systemMemory asks the kernel for the machine's memory and the percentage of it that is free or
// can be taken back without swapping: what the system itself acts on under pressure. A kernel that
// does not tell the percentage leaves all of the memory as the limit.
func systemMemory() (bytes int64, known bool) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, false
	}
	free, err := unix.SysctlUint32("kern.memorystatus_level")
	if err != nil {
		free = 100
	}
	return share(total, free)
}

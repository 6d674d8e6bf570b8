package run

import "golang.org/x/sys/unix"

// systemMemory returns the percentage of memory that is free or can be reclaimed without swapping,
// the figure by which macOS itself measures memory pressure. If the kernel does not report it, all
// memory counts as available.
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

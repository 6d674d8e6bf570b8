package run

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// A process may use memory up to the smallest limit that applies to it. A container is limited by
// its control group, which the machine's free memory does not show. Beyond it the kernel
// kills the process without a message.

// AvailableMemory returns the bytes that can be allocated without swapping; known is false if the
// system does not report them. On Linux it is the smaller of the kernel's estimate of free memory
// and what the control groups of this process still allow. On macOS it is the percentage of memory
// that the kernel counts as free.
func AvailableMemory() (bytes int64, known bool) { return systemMemory() }

// share returns percent % of total; known is false if either value is impossible.
func share(total uint64, percent uint32) (bytes int64, known bool) {
	if total == 0 || total > math.MaxInt64/100 || percent > 100 {
		return 0, false
	}
	return int64(total) / 100 * int64(percent), true
}

// availableIn is AvailableMemory by the files of a Linux system.
func availableIn(system fs.FS) (int64, bool) {
	least := int64(math.MaxInt64)
	if free, ok := field(system, "proc/meminfo", "MemAvailable:"); ok {
		least = free << 10
	}
	groups, _ := fs.ReadFile(system, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path; version 2 has hierarchy 0 and names no controller
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if v := (version{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}); parts[0] == "0" && parts[1] == "" {
			least = min(least, v.left(system, parts[2]))
		}
		for _, controller := range strings.Split(parts[1], ",") {
			if v := (version{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}); controller == "memory" {
				least = min(least, v.left(system, parts[2]))
			}
		}
	}
	return least, least < math.MaxInt64
}

// version holds the file names of control groups of version 1 or 2.
type version struct {
	mount, limit, usage string
	// the field of memory.stat with the pages that the kernel reclaims before it refuses memory
	reclaimable string
}

// left returns the bytes that the group and its parents still allow, or MaxInt64. In a container,
// group may be a path outside of the container: then only the files of the mount itself exist.
func (v version) left(system fs.FS, group string) int64 {
	least := int64(math.MaxInt64)
	for dir := path.Join("/", group); ; dir = path.Dir(dir) {
		at := path.Join(v.mount, dir)
		if limit, ok := number(system, path.Join(at, v.limit)); ok { // "max" is not a number: no limit
			used, _ := number(system, path.Join(at, v.usage))
			back, _ := field(system, path.Join(at, "memory.stat"), v.reclaimable)
			least = min(least, max(0, limit-max(0, used-back)))
		}
		if dir == "/" {
			return least
		}
	}
}

func number(system fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(system, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field returns the number after the key at the beginning of a line.
func field(system fs.FS, name, key string) (int64, bool) {
	text, err := fs.ReadFile(system, name)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == key {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

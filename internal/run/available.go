package run

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// What a reader could break: a process may take no more memory than the smallest limit that
// applies to it. A container's limit is that of its control group, which the machine's free
// memory does not show; beyond it the kernel kills the process silently.

// AvailableMemory is what can be taken without swapping: on Linux the smaller of what the machine
// has free, by the kernel's estimate, and what the control groups of this process still allow; on
// macOS the share of memory that the kernel counts as free.
func AvailableMemory() (bytes int64, known bool) { return systemMemory() }

// share is a percentage of a size; unknown where either makes no sense.
func share(total uint64, percent uint32) (bytes int64, known bool) {
	if total == 0 || total > math.MaxInt64/100 || percent > 100 {
		return 0, false
	}
	return int64(total) / 100 * int64(percent), true
}

// availableIn reads a system's files.
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

// version names the files of control groups of version 1 or 2.
type version struct {
	mount, limit, usage string
	// the line of memory.stat that counts pages which the kernel takes back before it refuses any
	reclaimable string
}

// left is the least that the group and those above it allow. In a container the path may be that
// outside of it: then only the mount's own files are there.
func (v version) left(system fs.FS, group string) int64 {
	least := int64(math.MaxInt64)
	for dir := path.Join("/", group); ; dir = path.Dir(dir) {
		at := path.Join(v.mount, dir)
		if limit, ok := number(system, path.Join(at, v.limit)); ok { // "max" is no number
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

// field is the number after a name at the beginning of a line.
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

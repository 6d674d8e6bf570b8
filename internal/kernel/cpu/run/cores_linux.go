package run

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// fastCores counts the cores of the highest capacity among those this process may run on; 0: the
// system does not tell, or they are of one kind. It is asked once.
var fastCores = sync.OnceValue(func() int {
	var mine unix.CPUSet
	if unix.SchedGetaffinity(0, &mine) != nil {
		return 0
	}
	return fastIn(os.DirFS("/"), mine.IsSet)
})

// fastIn reads a system's files: arm64 gives each core a capacity; Intel's cores of two kinds are
// lists of their own.
func fastIn(system fs.FS, mine func(cpu int) bool) int {
	if big := coreList(system, "sys/devices/cpu_core/cpus"); len(big) > 0 && len(coreList(system, "sys/devices/cpu_atom/cpus")) > 0 {
		n := 0
		for _, c := range big {
			if mine(c) {
				n++
			}
		}
		return n
	}
	files, _ := fs.Glob(system, "sys/devices/system/cpu/cpu[0-9]*/cpu_capacity")
	best, n, all := 0, 0, 0
	for _, f := range files {
		cpu, err := strconv.Atoi(strings.TrimPrefix(path.Base(path.Dir(f)), "cpu"))
		text, bad := fs.ReadFile(system, f)
		capacity, odd := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || bad != nil || odd != nil || !mine(cpu) {
			continue
		}
		all++
		switch {
		case capacity > best:
			best, n = capacity, 1
		case capacity == best:
			n++
		}
	}
	if n == all {
		return 0
	}
	return n
}

// coreList reads a list such as 0-7,16.
func coreList(system fs.FS, name string) (cores []int) {
	text, err := fs.ReadFile(system, name)
	if err != nil {
		return nil
	}
	for _, part := range strings.Split(strings.TrimSpace(string(text)), ",") {
		low, high, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(high)
		}
		if err != nil || to-from > 1<<16 {
			return nil
		}
		for c := from; c <= to; c++ {
			cores = append(cores, c)
		}
	}
	return cores
}

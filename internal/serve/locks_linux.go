package serve

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// locks are the inodes that some process holds by flock, read from the kernel's table. Trying a
// lock would hold it for a moment, and a run that starts in that moment would find its folder in
// use.
type locks map[string]bool

func flocks() locks {
	out := locks{}
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(text)) {
		// "1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF"
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" {
			continue
		}
		if i := strings.LastIndexByte(f[5], ':'); i >= 0 {
			out[f[5][i+1:]] = true
		}
	}
	return out
}

func (l locks) holds(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && l[strconv.FormatUint(st.Ino, 10)]
}

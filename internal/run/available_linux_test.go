package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestARealControlGroupIsHeeded: a process in a control group with a limit of 256 MiB has no more
// than that available. The test needs the right to create a group: it runs as root on a system that
// mounts the memory controller.
func TestARealControlGroupIsHeeded(t *testing.T) {
	const limit = 256 << 20
	if os.Getenv("HAUL_TEST_AVAILABLE") != "" {
		n, known := AvailableMemory()
		fmt.Printf("available %d %v\n", n, known)
		return
	}
	group := ""
	for _, g := range []struct{ root, file string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}, {"/sys/fs/cgroup/unified", "memory.max"}} {
		at := filepath.Join(g.root, fmt.Sprintf("haul-test-%d", os.Getpid()))
		if os.Mkdir(at, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(at) })
		if os.WriteFile(filepath.Join(at, g.file), []byte(strconv.Itoa(limit)), 0o644) == nil {
			group = at
			break
		}
	}
	if group == "" {
		t.Skip("no right to make a control group of memory")
	}
	cmd := exec.Command("/bin/sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$1" -test.run '^TestARealControlGroupIsHeeded$'`, group, os.Args[0])
	cmd.Env = append(os.Environ(), "HAUL_TEST_AVAILABLE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var n int64
	var known bool
	at := strings.Index(string(out), "available ")
	if _, err := fmt.Sscanf(string(out)[max(0, at):], "available %d %t", &n, &known); err != nil || !known || n <= 0 || n > limit {
		t.Errorf("under a limit of %d bytes the process says: %s", limit, out)
	}
}

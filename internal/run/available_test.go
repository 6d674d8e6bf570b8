package run

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

// TestAContainersLimitCounts: the available memory is the least of the machine's free memory and of
// what each control group above the process still allows.
func TestAContainersLimitCounts(t *testing.T) {
	const gib = 1 << 30
	base := map[string]string{"proc/meminfo": "MemTotal:       33554432 kB\nMemAvailable:   16777216 kB\n"}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no group", nil, 16 * gib},
		{"version 2 without a limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 16 * gib},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/user/run\n", "sys/fs/cgroup/user/run/memory.max": "4294967296\n",
			"sys/fs/cgroup/user/run/memory.current": "2147483648\n", "sys/fs/cgroup/user/run/memory.stat": "anon 1\ninactive_file 1073741824\n"}, 3 * gib},
		{"version 2, the parent's", map[string]string{"proc/self/cgroup": "0::/user/run\n", "sys/fs/cgroup/user/run/memory.max": "max\n",
			"sys/fs/cgroup/user/memory.max": "2147483648\n", "sys/fs/cgroup/user/memory.current": "1073741824\n"}, gib},
		{"version 2, a path from outside", map[string]string{"proc/self/cgroup": "0::/docker/abc\n", "sys/fs/cgroup/memory.max": "5368709120\n"}, 5 * gib},
		{"version 1", map[string]string{"proc/self/cgroup": "5:cpu,memory:/docker/abc\n0::/\n", "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "6442450944\n",
			"sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": "3221225472\n", "sys/fs/cgroup/memory/docker/abc/memory.stat": "inactive_file 7\ntotal_inactive_file 1073741824\n"}, 4 * gib},
		{"version 1 without a limit", map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "5368709120\n"}, 16 * gib},
		{"spent", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n", "sys/fs/cgroup/memory.current": "1073745920\n"}, 0},
	} {
		system := fstest.MapFS{}
		for _, files := range []map[string]string{base, c.files} {
			for name, text := range files {
				system[name] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		if got, known := availableIn(system); got != c.want || !known {
			t.Errorf("%s: %d bytes, known %v; want %d", c.name, got, known, c.want)
		}
	}
	if _, known := availableIn(fstest.MapFS{}); known {
		t.Error("a system that tells nothing has so much")
	}
}

// TestSizesSaturate: without saturation an overflow would look like a small size.
func TestSizesSaturate(t *testing.T) {
	for _, c := range []struct{ got, want int64 }{
		{Product(4, 65536, 65536), 1 << 34},
		{Product(1<<40, 1<<40), math.MaxInt64},
		{Product(1<<32, 0, 1<<40), 0},
		{Sum(1<<62, 1<<62), math.MaxInt64},
		{Sum(1, 2), 3},
	} {
		if c.got != c.want {
			t.Errorf("%d, want %d", c.got, c.want)
		}
	}
}

// TestAFileThatNoDiskHolds: the error comes before hours of work are spent on the file.
func TestAFileThatNoDiskHolds(t *testing.T) {
	path := t.TempDir() + "/x"
	if _, known := freeDisk(t.TempDir()); !known {
		t.Skip("this system does not tell what is free on a disk")
	}
	if err := FitsDisk(path, math.MaxInt64); err == nil {
		t.Error("a file of 2^63 bytes has room")
	}
	if err := FitsDisk(path, 1); err != nil {
		t.Error(err)
	}
}

// TestAdviceOnMemoryNamesAValue: the error ends with advice for every kind of key.
func TestAdviceOnMemoryNamesAValue(t *testing.T) {
	for key, want := range map[string]string{"count": "count 45 would fit", "--episodes": "--episodes 45 would fit", "": "lower the model's size", "--data host": "use --data host"} {
		err := within(key, "the host", "it", 100, 2<<20, 1<<20, true)
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// A percentage of the machine's memory is known unless the figures are impossible.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		total   uint64
		percent uint32
		want    int64
		known   bool
	}{{16 << 30, 50, 16 << 30 / 100 * 50, true}, {16 << 30, 100, 16 << 30 / 100 * 100, true}, {16 << 30, 0, 0, true}, {0, 50, 0, false}, {16 << 30, 101, 0, false}, {1 << 63, 1, 0, false}} {
		if got, known := share(c.total, c.percent); got != c.want || known != c.known {
			t.Errorf("%d %% of %d is %d, %v", c.percent, c.total, got, known)
		}
	}
}

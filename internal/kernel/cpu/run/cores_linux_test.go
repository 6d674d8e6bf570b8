package run

import (
	"testing"
	"testing/fstest"
)

// TestFastCores: by capacity on arm64, by lists on Intel, among the cores that are this process's.
func TestFastCores(t *testing.T) {
	all := func(int) bool { return true }
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	const at = "sys/devices/system/cpu/cpu"
	mixed := fstest.MapFS{at + "0/cpu_capacity": file("512"), at + "1/cpu_capacity": file("512"), at + "2/cpu_capacity": file("1024"), at + "10/cpu_capacity": file("1024"), at + "3/cpu_capacity": file("768")}
	hybrid := fstest.MapFS{"sys/devices/cpu_core/cpus": file("0-7,16"), "sys/devices/cpu_atom/cpus": file("8-15")}
	for _, c := range []struct {
		name   string
		system fstest.MapFS
		mine   func(int) bool
		want   int
	}{
		{"three kinds", mixed, all, 2},
		{"the small ones alone", mixed, func(c int) bool { return c < 2 }, 0},
		{"one fast core is not ours", mixed, func(c int) bool { return c != 10 }, 1},
		{"one kind", fstest.MapFS{at + "0/cpu_capacity": file("1024"), at + "1/cpu_capacity": file("1024")}, all, 0},
		{"lists", hybrid, all, 9},
		{"lists, some ours", hybrid, func(c int) bool { return c >= 6 }, 3},
		{"one list", fstest.MapFS{"sys/devices/cpu_core/cpus": file("0-7")}, all, 0},
		{"a list that is none", fstest.MapFS{"sys/devices/cpu_core/cpus": file("a-b"), "sys/devices/cpu_atom/cpus": file("8")}, all, 0},
		{"no word", fstest.MapFS{}, all, 0},
	} {
		if got := fastIn(c.system, c.mine); got != c.want {
			t.Errorf("%s: %d fast cores, want %d", c.name, got, c.want)
		}
	}
}

package serve

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// exposition is the media type of Prometheus' text format 0.0.4, described at
// https://prometheus.io/docs/instrumenting/exposition_formats.
const exposition = "text/plain; version=0.0.4; charset=utf-8"

// counters are whole numbers that only grow, one for each combination of labels.
type counters struct {
	name, help string
	labels     []string
	mu         sync.Mutex
	values     map[string]uint64 // by the labels as they are printed
}

func (c *counters) inc(values ...string) {
	key := labelled(c.labels, values)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = map[string]uint64{}
	}
	c.values[key]++
}

func (c *counters) write(b *bytes.Buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.values) == 0 {
		return
	}
	head(b, c.name, c.help, "counter")
	for _, key := range sorted(c.values) {
		fmt.Fprintf(b, "%s{%s} %d\n", c.name, key, c.values[key])
	}
}

// histograms count observations by upper bounds, one histogram for each value of a label.
type histograms struct {
	name, help, label string
	bounds            []float64 // rising; the last bucket, above them all, is implied
	mu                sync.Mutex
	values            map[string]*histogram
}

type histogram struct {
	counts []uint64 // by bound, then those above them all
	sum    float64
}

func (h *histograms) observe(value string, x float64) {
	key := labelled([]string{h.label}, []string{value})
	i, _ := slices.BinarySearch(h.bounds, x)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.values == nil {
		h.values = map[string]*histogram{}
	}
	one := h.values[key]
	if one == nil {
		one = &histogram{counts: make([]uint64, len(h.bounds)+1)}
		h.values[key] = one
	}
	one.counts[i]++
	one.sum += x
}

// write prints buckets as Prometheus counts them: each holds what the smaller ones hold.
func (h *histograms) write(b *bytes.Buffer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.values) == 0 {
		return
	}
	head(b, h.name, h.help, "histogram")
	for _, key := range sorted(h.values) {
		one, total := h.values[key], uint64(0)
		for i, count := range one.counts {
			bound := math.Inf(1)
			if i < len(h.bounds) {
				bound = h.bounds[i]
			}
			total += count
			fmt.Fprintf(b, "%s_bucket{%s,le=%q} %d\n", h.name, key, decimal(bound), total)
		}
		fmt.Fprintf(b, "%s_sum{%s} %s\n%s_count{%s} %d\n", h.name, key, decimal(one.sum), h.name, key, total)
	}
}

// gauge is a number that read returns at each request.
type gauge struct {
	name, help, kind string // kind: gauge or counter
	read             func() float64
}

func (g gauge) write(b *bytes.Buffer) {
	head(b, g.name, g.help, g.kind)
	fmt.Fprintf(b, "%s %s\n", g.name, decimal(g.read()))
}

func head(b *bytes.Buffer, name, help, kind string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func labelled(names, values []string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		escaped := strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`).Replace(values[i])
		b.WriteString(name + `="` + escaped + `"`)
	}
	return b.String()
}

func decimal(x float64) string {
	if math.IsInf(x, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

var started = time.Now()

// writeProcess prints figures of the process and of Go's run time under the names that Prometheus'
// client libraries use. Systems without /proc print fewer.
func writeProcess(b *bytes.Buffer) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	head(b, "go_info", "Version of Go.", "gauge")
	fmt.Fprintf(b, "go_info{%s} 1\n", labelled([]string{"version"}, []string{runtime.Version()}))
	row := func(name, help, kind string, value float64) {
		gauge{name, help, kind, func() float64 { return value }}.write(b)
	}
	row("go_goroutines", "Goroutines.", "gauge", float64(runtime.NumGoroutine()))
	row("go_gc_cycles_total", "Garbage collections that ended.", "counter", float64(memory.NumGC))
	row("go_gc_pause_seconds_total", "Time for which garbage collections stopped the program.", "counter", float64(memory.PauseTotalNs)/1e9)
	row("go_memstats_alloc_bytes", "Bytes of objects that are in use or not collected yet.", "gauge", float64(memory.Alloc))
	row("go_memstats_alloc_bytes_total", "Bytes of objects made since the start.", "counter", float64(memory.TotalAlloc))
	row("go_memstats_sys_bytes", "Bytes taken from the system.", "gauge", float64(memory.Sys))
	row("process_start_time_seconds", "Start of the process, in seconds since 1970.", "gauge", float64(started.UnixMilli())/1e3)
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		row("process_open_fds", "Open files.", "gauge", float64(len(open)))
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return
	}
	// proc(5): the name in parentheses may hold spaces. Fields 14, 15 and 24 are utime, stime and rss.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	number := func(field int) float64 {
		x, _ := strconv.ParseFloat(fields[field-3], 64)
		return x
	}
	if len(fields) < 22 {
		return
	}
	const ticks = 100 // per second, on every Linux that Go runs on
	row("process_cpu_seconds_total", "Time on processors, user and system.", "counter", (number(14)+number(15))/ticks)
	row("process_resident_memory_bytes", "Bytes in memory.", "gauge", number(24)*float64(os.Getpagesize()))
}

package doctor

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The traces in testdata are recordings of real steps on an H200 with PyTorch 2.11. The large ones
// are reduced by this tool, which keeps what the reader keeps (the outermost operators, how many
// others the long ones hold, the calls that are counted, all GPU work) and every argument the
// reader reads, and drops the rest:
//
//	go test ./internal/doctor -run TestShrink -shrink trace.json.gz
var (
	shrinkFile = flag.String("shrink", "", "write a reduced copy of this trace to testdata")
	keepSteps  = flag.Int("keep-steps", 2, "steps that the reduced copy keeps")
)

type rawEvent struct {
	Ph   string         `json:"ph"`
	Cat  string         `json:"cat"`
	Name string         `json:"name"`
	Pid  any            `json:"pid"`
	Tid  any            `json:"tid"`
	Ts   json.Number    `json:"ts"`
	Dur  json.Number    `json:"dur,omitempty"`
	Args map[string]any `json:"args,omitempty"`
}

func (e *rawEvent) span() (start, end int64) {
	ns := func(us json.Number) int64 {
		f, _ := us.Float64()
		return int64(math.Round(1000 * f))
	}
	return ns(e.Ts), ns(e.Ts) + ns(e.Dur)
}

// kinds are the categories whose events the reader keeps.
var kinds = map[string]string{"cpu_op": "op", "Operator": "op", "cuda_runtime": "call", "cuda_driver": "call", "kernel": "gpu",
	"gpu_memcpy": "gpu", "gpu_memset": "gpu", "user_annotation": "note", "python_function": "frame", "overhead": "overhead"}

type rawTrace struct {
	Device []any      `json:"deviceProperties,omitempty"`
	Events []rawEvent `json:"traceEvents"`
}

func readRaw(t testing.TB, path string) rawTrace {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var raw rawTrace
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	if err := d.Decode(&raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestShrink(t *testing.T) {
	if *shrinkFile == "" {
		t.Skip("no trace to reduce: give -shrink")
	}
	raw := readRaw(t, *shrinkFile)
	until := endOfStep(raw.Events, *keepSteps)
	var kept []rawEvent
	for _, e := range raw.Events {
		start, _ := e.span()
		c := kinds[e.Cat]
		if e.Ph != "X" || c == "" || start >= until || c == "call" && !regexp.MustCompile(`Launch|Memcpy|Memset|Synchronize|Malloc|Free|Alloc`).MatchString(e.Name) {
			continue
		}
		for key := range e.Args {
			switch key {
			case "correlation", "bytes", "Sequence number", "blocks per SM", "Input Dims", "Concrete Inputs":
			default:
				delete(e.Args, key)
			}
		}
		if c != "op" {
			delete(e.Args, "Sequence number")
		}
		if len(e.Name) > 120 {
			e.Name = e.Name[:120]
		}
		kept = append(kept, e)
	}
	raw.Events = outermost(kept)
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(z).Encode(raw); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join("testdata", filepath.Base(*shrinkFile))
	if err := os.WriteFile(out, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d of the events, %d bytes", out, len(raw.Events), b.Len())
}

// endOfStep is the moment at which step n has ended.
func endOfStep(events []rawEvent, n int) int64 {
	var ends []int64
	for _, e := range events {
		if strings.HasPrefix(e.Name, "ProfilerStep#") && kinds[e.Cat] == "note" {
			_, end := e.span()
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	return ends[min(n, len(ends))-1]
}

func outermost(events []rawEvent) []rawEvent {
	slices.SortStableFunc(events, func(x, y rawEvent) int {
		xs, xe := x.span()
		ys, ye := y.span()
		return cmp.Or(strings.Compare(fmt.Sprint(x.Pid, x.Tid), fmt.Sprint(y.Pid, y.Tid)), cmp.Compare(xs, ys), cmp.Compare(ye, xe))
	})
	const long = 250_000 // ns
	from, end, thread := int64(0), int64(0), ""
	out := events[:0]
	for _, e := range events {
		start, stop := e.span()
		switch at := fmt.Sprint(e.Pid, e.Tid); {
		case kinds[e.Cat] != "op":
		case at == thread && stop <= end:
			if end-from < long {
				continue
			}
			e.Args = nil // it is only counted
		case start >= end || at != thread:
			thread, from, end = at, start, stop
		}
		out = append(out, e)
	}
	return out
}

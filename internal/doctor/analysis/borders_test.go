package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/trace"
)

// read is the analysis of events.
func read(t *testing.T, events ...string) *Analysis {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(`{"traceEvents":[` + strings.Join(events, ",\n") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Analyse(tr)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func ev(cat, name string, tid int, ts, dur float64, args string) string {
	return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":%d,"ts":%g,"dur":%g,"args":{%s}}`, cat, name, tid, ts, dur, args)
}

// What each link carries, as the makers' tests count it.
func TestTraffic(t *testing.T) {
	for _, c := range []struct {
		kind    string
		members int
		want    float64
	}{{"all_reduce", 8, 1.75}, {"all_reduce", 2, 1}, {"all_reduce", 0, 1}, {"all_gather", 4, 0.75}, {"reduce_scatter", 8, 0.875}, {"all_to_all", 2, 0.5}, {"broadcast", 8, 1}, {"send_recv", 4, 1}} {
		if got := Traffic(c.kind, c.members); got != c.want {
			t.Errorf("%s over %d: %v, want %v", c.kind, c.members, got, c.want)
		}
	}
}

// Communication is a mean over devices. It is exposed while no kernel runs.
func TestCommunicationOverDevices(t *testing.T) {
	var list []string
	list = append(list, ev("user_annotation", "ProfilerStep#1", 1, 0, 800, ""))
	for d := range 2 {
		dev := fmt.Sprintf(`"device":%d,"stream":%d`, d, 7)
		list = append(list, ev("kernel", "gemm", 7, 0, 500, dev), ev("kernel", "ncclDevKernel_AllReduce_Sum", 9, 400, float64(200+200*d), fmt.Sprintf(`"device":%d,"stream":9`, d)))
	}
	a := read(t, list...)
	// device 0: 200 µs, 100 exposed; device 1: 400 and 300
	if a.Comm.Total != 300e3 || a.Comm.Exposed != 200e3 {
		t.Errorf("%v ns, %v exposed; want 300 and 200 µs", a.Comm.Total, a.Comm.Exposed)
	}
	for _, f := range a.Comm.Families {
		if f.Kind != "all_reduce" || f.NS != 300e3 || f.Exposed != 200e3 || f.N != 2 {
			t.Errorf("%+v", f)
		}
	}
	b := a.Breakdown()
	if math.Abs(b.ComputeShare-0.625) > 1e-9 || math.Abs(b.CommExposedShare-0.25) > 1e-9 || math.Abs(b.CommHiddenShare-0.125) > 1e-9 || math.Abs(b.IdleShare-0.125) > 1e-9 || math.Abs(b.CopyShare) > 1e-9 {
		t.Errorf("%+v", b)
	}
}

// The edges of a single step are left out from a twentieth of it on; those of several are not. A
// fetch of the loader stays, and so does a front in which work that was not recorded ran.
func TestEdgesOfASingleStep(t *testing.T) {
	kernel := func(at float64) string {
		return ev("kernel", "gemm", 7, at, 100, `"device":0,"stream":7,"correlation":5`)
	}
	launch := func(at float64) string { return ev("cuda_runtime", "cudaLaunchKernel", 1, at, 2, `"correlation":5`) }
	mark := func(n int, at float64) string {
		return ev("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), 1, at, 1000, "")
	}
	for _, c := range []struct {
		name          string
		list          []string
		before, after int64 // ns left out
	}{
		{"both edges", []string{mark(1, 0), launch(197), kernel(200)}, 200e3, 700e3},
		{"a front below a twentieth", []string{mark(1, 0), launch(40), kernel(49.9)}, 0, 850.1e3},
		{"a front of a twentieth", []string{mark(1, 0), launch(40), kernel(50)}, 50e3, 850e3},
		{"two steps", []string{mark(1, 0), launch(197), kernel(200), mark(2, 1000), kernel(1200)}, 0, 0},
		{"work of no length", []string{mark(1, 0), ev("kernel", "gemm", 7, 200, 0, `"device":0,"stream":7`)}, 0, 0},
		{"issued long before", []string{mark(1, 0), launch(10), kernel(200)}, 0, 700e3},
		{"behind the loader", []string{mark(1, 0), ev("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 100, 90, ""), launch(197), kernel(200)}, 100e3, 700e3},
	} {
		a := read(t, c.list...)
		if before, after := a.Before.End-a.Before.Start, a.After.End-a.After.Start; before != c.before || after != c.after {
			t.Errorf("%s: %d and %d ns left out, want %d and %d", c.name, before, after, c.before, c.after)
		}
	}
}

// steps makes marks of these lengths. The steps in cold contain a first use of the driver.
func steps(cold map[int]float64, lengths ...float64) []string {
	var out []string
	at := 0.0
	for i, us := range lengths {
		out = append(out, ev("user_annotation", fmt.Sprintf("ProfilerStep#%d", i), 1, at, us, ""), ev("cpu_op", "aten::add", 1, at, 5, ""),
			ev("cuda_runtime", "cudaLaunchKernel", 1, at+1, 2, ""), ev("cuda_runtime", "cudaLaunchKernel", 1, at+4, 2, ""))
		if us := cold[i]; us > 0 {
			out = append(out, ev("cuda_runtime", "cuModuleLoadData", 1, at+10, us, ""))
		}
		at += us
	}
	return out
}

// Leading steps are left out where they take three times the middle one and first uses hold half of
// that, or ten times it for any reason.
func TestColdSteps(t *testing.T) {
	for _, c := range []struct {
		name    string
		cold    map[int]float64
		lengths []float64
		skipped int
	}{
		{"three times and cold", map[int]float64{0: 2000}, []float64{3100, 1000, 1000, 1000}, 1},
		{"three times, exactly", map[int]float64{0: 2000}, []float64{3000, 1000, 1000, 1000}, 0},
		{"three times, half of it cold", map[int]float64{0: 1550}, []float64{3100, 1000, 1000, 1000}, 0},
		{"ten times, warm", nil, []float64{10100, 1000, 1000, 1000}, 1},
		{"ten times, exactly", nil, []float64{10000, 1000, 1000, 1000}, 0},
		{"two of four", nil, []float64{10100, 10100, 1000, 1000, 1000}, 2},
		{"a later one stays", nil, []float64{1000, 10100, 1000, 1000}, 0},
		{"two steps", nil, []float64{10100, 1000}, 0},
		{"the middle is the middle", nil, []float64{10100, 1000, 1000, 4000, 5000}, 0},
	} {
		a := read(t, steps(c.cold, c.lengths...)...)
		if a.Skipped != c.skipped || len(a.Steps) != len(c.lengths)-c.skipped {
			t.Errorf("%s: %d left out, want %d", c.name, a.Skipped, c.skipped)
		}
	}
}

// The widest gaps come first, five at most, none below a thousandth of the step.
func TestWidestGaps(t *testing.T) {
	list := []string{ev("user_annotation", "ProfilerStep#1", 1, 0, 100_000, "")}
	at := 0.0
	for _, pause := range []float64{300, 90, 700, 110, 500, 200, 400, 700} {
		list = append(list, ev("kernel", "gemm", 7, at, 1000, `"device":0,"stream":7`))
		at += 1000 + pause
	}
	list = append(list, ev("kernel", "gemm", 7, at, 100_000-at, `"device":0,"stream":7`))
	a := read(t, list...)
	var got []int64
	for _, g := range a.Widest {
		got = append(got, (g.End-g.Start)/1000)
	}
	if !slices.Equal(got, []int64{700, 700, 500, 400, 300}) || a.Widest[0].Start > a.Widest[1].Start {
		t.Errorf("%v µs", got)
	}
	if a.shows(trace.Span{Start: 0, End: 99_999}) || !a.shows(trace.Span{Start: 0, End: 100_000}) {
		t.Error("a thousandth of the step is where a stretch begins to show")
	}
}

// Ranked returns the largest costs, and equal ones in alphabetical order.
func TestRanked(t *testing.T) {
	var list []string
	for i, name := range []string{"d", "b", "e", "a", "c", "b"} {
		list = append(list, ev("cpu_op", name, 1, float64(100*i), []float64{10, 5, 20, 10, 10, 5}[i], ""))
	}
	a := read(t, list...)
	c := a.NewCharge()
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) { c.Count(o) })
	for n, want := range map[int]string{1: "e", 3: "eab", 9: "eabcd"} {
		got := ""
		for _, v := range c.Ranked(n, (*Named).OnCPU) {
			got += a.Names.List[v.Name].Text
		}
		if got != want {
			t.Errorf("the first %d: %s, want %s", n, got, want)
		}
	}
}

// Places in the code, as PyTorch and JAX write them.
func TestCodeLines(t *testing.T) {
	for text, want := range map[string]string{
		"train.py(12): loop": "train.py 12 loop true", "a(b).py(3): f": "a(b).py 3 f true", "$lib.py:7 g": "lib.py 7 g true", "$x g": "   false", "(12): f": "   false", "a.py(x): f": "   false",
		"a.py(12) f": "   false", "<built-in f>": "   false", "$:7 g": "   false", "a.py(): f": "   false",
	} {
		file, line, function, ok := codeLine(text)
		if got := fmt.Sprint(file, " ", line, " ", function, " ", ok); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for file, want := range map[string]bool{"torch/nn/a.py": true, "/x/torch/a.py": true, "/usr/lib/python3.11/a.py": true, "/usr/lib/python3.11/site-packages/mine/a.py": false, "<string>": true, "train.py": false} {
		if isLibrary(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
}

// A median is the middle one, of an even number the lower or the upper one's neighbour, never a
// stranger.
func TestMedian(t *testing.T) {
	for _, c := range []struct {
		list []int64
		want []int64
	}{{[]int64{3}, []int64{3}}, {[]int64{5, 1, 3}, []int64{3}}, {[]int64{4, 1, 2, 9}, []int64{2, 4}}} {
		if got := Median(slices.Clone(c.list)); !slices.Contains(c.want, got) {
			t.Errorf("%v: %v", c.list, got)
		}
	}
}

// A charge is placed by the hundredth of its step, the last one included.
func TestPlacesAreHundredths(t *testing.T) {
	a := new(Analysis)
	a.CPUSteps = []trace.Window{{Start: 1000, End: 2000}}
	for at, want := range map[int64]int{900: 0, 1000: 0, 1009: 0, 1010: 1, 1500: 50, 1989: 98, 1990: 99, 1999: 99, 2000: 99, 2100: 99} {
		c := a.NewCharge()
		if c.Place(at, 0, 7); c.places[want] != 7 {
			t.Errorf("%d: %v, want it at %d", at, c.places, want)
		}
	}
}

// The course of memory is in milliseconds from the first step on and in MiB; of many moments those
// with most are kept.
func TestTheCourseOfMemory(t *testing.T) {
	a := new(Analysis)
	a.CPUSteps = []trace.Window{{Start: 1e6, End: 9e6}}
	few := []*trace.Alloc{{At: 1e6, Total: 1 << 20}, {At: 3e6, Total: 5 << 19}}
	if got, want := a.levels(few), []MemoryLevel{{0, 1}, {2, 2.5}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var many []*trace.Alloc
	for i := range 2*memoryPoints + 1 {
		many = append(many, &trace.Alloc{At: 1e6 + int64(i), Total: int64(i) << 20})
	}
	got := a.levels(many)
	if len(got) > memoryPoints || got[0].MB != 2 || got[len(got)-1].MB != 2*memoryPoints {
		t.Errorf("%d levels from %v to %v", len(got), got[0], got[len(got)-1])
	}
}

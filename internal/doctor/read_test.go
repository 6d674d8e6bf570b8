package doctor

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/doctor/report"
	"haul/internal/doctor/trace"
	"haul/internal/limits/limitstest"
)

func pack(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// oneOp is the smallest event that says something.
const oneOp = `{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":10,"dur":5}`

func TestBadInputIsNamed(t *testing.T) {
	whole := newSynth()
	whole.step(1, func() { whole.dense(50, 10) })
	data := whole.json()
	packed := pack(t, data)
	for _, c := range []struct{ name, data, want string }{
		{"nothing", "", "the file is empty"},
		{"white space", " \n\t", "the file is empty"},
		{"words", "hello", `not a trace: it starts with "hello"`},
		{"a picture", "\x89PNG\r\n", "not a trace"},
		{"a number", "17", "not a trace"},
		{"broken object", `{"traceEvents":[{"ph" "X"}]}`, "not a trace: no JSON at byte 22"},
		{"key without quotes", `{traceEvents:[]}`, "not a trace: no JSON at byte 1"},
		{"other JSON", `{"a":1,"b":[1,2]}`, "no traceEvents"},
		{"no events", `{"traceEvents":[]}`, "no events"},
		{"empty array", `[]`, "no events"},
		{"array of numbers", `[1,2,3]`, "no events"},
		{"events of another kind", `{"traceEvents":5}`, "no traceEvents"},
		{"cut in an event", string(data[:len(data)/2]), "the JSON is cut off"},
		{"cut between events", `{"traceEvents":[` + oneOp + `,`, "the JSON is cut off at byte 93 after 1 events"},
		{"cut behind the events", `{"traceEvents":[` + oneOp + `]`, "the JSON is cut off"},
		{"cut gzip", string(packed[:len(packed)/2]), "the gzip file is cut off"},
		{"cut gzip header", string(packed[:5]), "gzip header"},
		{"damaged gzip", string(packed[:20]) + "xxxxxxxx" + string(packed[28:]), "the gzip file is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := trace.Read(strings.NewReader(c.data))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// The array form needs no closing bracket, nor anything behind its last comma.
func TestAnArrayMayBeOpen(t *testing.T) {
	for _, end := range []string{"]", "", ",", ",\n", "\n\n"} {
		tr, err := trace.Read(strings.NewReader("[" + oneOp + ",\n" + oneOp + end))
		if err != nil || tr.Events != 2 {
			t.Errorf("ending in %q: %v, %+v; want two events", end, err, tr)
		}
	}
	for _, data := range []string{"[" + oneOp + "," + oneOp[:20], "[", "[ "} {
		if _, err := trace.Read(strings.NewReader(data)); err == nil || !strings.Contains(err.Error(), "the JSON is cut off") {
			t.Errorf("%q: %v, want that it is cut off", data, err)
		}
	}
}

func TestNothingToMeasure(t *testing.T) {
	tr, err := trace.Read(strings.NewReader(`[{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Diagnose(tr); err == nil || !strings.Contains(err.Error(), "nothing to measure") {
		t.Errorf("got %v", err)
	}
}

func diagnose(t testing.TB, data []byte) *report.Report {
	t.Helper()
	tr, err := trace.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Diagnose(tr)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// outcome is the JSON of a report.
func outcome(r *report.Report) string {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestFormsOfOneTrace(t *testing.T) {
	s := newSynth()
	for n := range 2 {
		s.step(n, func() { s.dense(20, 30); s.item() })
	}
	data := s.json()
	want := outcome(diagnose(t, data))
	events := data[bytes.IndexByte(data, '['):]
	events = events[bytes.Index(events, []byte("[\n")) : bytes.LastIndexByte(events, ']')+1]
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"gzip", pack(t, data)},
		{"gzip in two members", append(pack(t, data[:len(data)/2]), pack(t, data[len(data)/2:])...)},
		{"keys behind the events", append(append([]byte(`{"traceEvents":`), events...), []byte(`,"deviceProperties":[{"name":"NVIDIA H200","computeMajor":9}],"x":{"y":[1,{"z":"]"}]}}`)...)},
		{"spread out", bytes.ReplaceAll(data, []byte(`,"`), []byte(" ,\n\t \""))},
		{"words that are no JSON", bytes.ReplaceAll(data, []byte(`"args":{"`), []byte(`"args":{"memory bandwidth (GB/s)":inf,"x":-nan,"Input Strides":[[1,"]"],[]],"`))},
		{"older categories", []byte(strings.NewReplacer(`"cpu_op"`, `"Operator"`, `"cuda_runtime"`, `"Runtime"`, `"kernel"`, `"Kernel"`, `"gpu_memcpy"`, `"Memcpy"`).Replace(string(data)))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(want, outcome(diagnose(t, c.data))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheWindowMayCutAnywhere(t *testing.T) {
	s := newSynth()
	s.step(1, func() { s.dense(5, 30) })
	data := s.json()
	want := diagnose(t, data)
	for name, r := range map[string]io.Reader{
		"bytes":  iotest.OneByteReader(bytes.NewReader(data)),
		"halves": iotest.HalfReader(bytes.NewReader(data)),
		"errors": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		tr, err := trace.Read(r)
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := report.Diagnose(tr)
		if err != nil {
			t.Fatal(name, err)
		}
		if got.StepMS != want.StepMS || got.GPUBusyShare != want.GPUBusyShare {
			t.Errorf("%s: %v %v, want %v %v", name, got.StepMS, got.GPUBusyShare, want.StepMS, want.GPUBusyShare)
		}
	}
}

// An event wider than the window, and events across the end of several windows.
func TestEventsPastTheWindow(t *testing.T) {
	var b strings.Builder
	b.WriteString(`[`)
	wide := strings.Repeat("x", 3<<20)
	fmt.Fprintf(&b, `{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":1,"ts":0,"dur":1},`, wide)
	const n = 40_000
	for i := range n {
		fmt.Fprintf(&b, `{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":%d,"dur":5},`, 10*i+10)
	}
	b.WriteString(oneOp + `]`)
	tr, err := trace.Read(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if tr.Events != n+2 || tr.Threads[0].Ops.Len() != n+1 {
		t.Errorf("%d events, %d operators, want %d and %d", tr.Events, tr.Threads[0].Ops.Len(), n+2, n+1)
	}
	if len(tr.Names.List[1].Text) != len(wide) {
		t.Errorf("the wide name has %d bytes, want %d", len(tr.Names.List[1].Text), len(wide))
	}
}

func TestFaultyEventsAreLeftOutAndNamed(t *testing.T) {
	data := `[
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":100,"dur":5},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":10,"dur":5},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":20,"dur":-5},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":50,"dur":-1},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":"soon","dur":5},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":1e400,"dur":5},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":30}]`
	r := diagnose(t, []byte(data))
	want := []string{
		"2 events with a negative duration left out",
		"3 events without a readable time left out",
		"1 event out of time order, sorted",
		"no ProfilerStep in the trace: the whole recording counts as one step (give the profiler schedule= and call prof.step() after each step)",
		"no GPU events in the trace: only the CPU side can be judged (PyTorch records a GPU with ProfilerActivity.CUDA or .XPU; Apple's it cannot record)",
	}
	if diff := cmp.Diff(want, r.Remarks); diff != "" {
		t.Error(diff)
	}
	if r.StepMS != 0.095 { // from 10 µs to 105 µs
		t.Errorf("step %v ms, want 0.095", r.StepMS)
	}
}

func TestOutermostOperatorsSurviveAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "outer")
		var events []string
		for i := range n {
			start := 100 * i
			events = append(events, fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"outer","pid":1,"tid":1,"ts":%d,"dur":90}`, start))
			for k := range rapid.IntRange(0, 4).Draw(t, "inner") {
				events = append(events, fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"inner","pid":1,"tid":1,"ts":%d,"dur":15}`, start+20*k))
			}
		}
		events = rapid.Permutation(events).Draw(t, "order")
		tr, err := trace.Read(strings.NewReader("[" + strings.Join(events, ",") + "]"))
		if err != nil {
			t.Fatal(err)
		}
		ops := &tr.Threads[0].Ops
		if ops.Len() != n {
			t.Fatalf("%d operators, want %d", ops.Len(), n)
		}
		for i := range n {
			if o := ops.At(i); o.Start != int64(100_000*i) || tr.Names.List[o.Name].Text != "outer" {
				t.Fatalf("operator %d: %+v", i, o)
			}
		}
	})
}

// Whole microseconds, as PyTorch wrote until 2.2, let a child end after its parent.
func TestRoundedTimesStillNest(t *testing.T) {
	tr, err := trace.Read(strings.NewReader(`[
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":10,"dur":20},
{"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":1,"tid":1,"ts":12,"dur":19},
{"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":1,"ts":30,"dur":5}]`))
	if err != nil {
		t.Fatal(err)
	}
	if ops := &tr.Threads[0].Ops; ops.Len() != 2 || ops.At(1).Start != 30_000 {
		t.Errorf("%d operators", ops.Len())
	}
}

// endless repeats a body of events until a size is reached, so that a trace past memory needs no
// file.
func endless(body []byte, size int) io.Reader {
	readers := []io.Reader{strings.NewReader(`{"traceEvents":[`)}
	for n := 0; n < size; n += len(body) {
		if n > 0 {
			readers = append(readers, strings.NewReader(","))
		}
		readers = append(readers, bytes.NewReader(body))
	}
	return io.MultiReader(append(readers, strings.NewReader(`]}`))...)
}

// typicalEvents is a part of a launch-bound run as PyTorch writes it, with the shapes of nested
// operators: about 350 bytes per event.
func typicalEvents() []byte {
	var b strings.Builder
	ts := 3845033789199.0
	for i := range 2000 {
		for _, name := range []string{"aten::linear", "aten::t", "aten::addmm"} {
			fmt.Fprintf(&b, `  {
    "ph": "X", "cat": "cpu_op", "name": "%s", "pid": 543, "tid": 568,
    "ts": %.3f, "dur": %d.435,
    "args": {
      "External id": %d,"Record function id": 0, "Sequence number": %d, "Concrete Inputs": ["", "", ""], "Input type": ["float", "float", "float"], "Input Strides": [[128, 1], [1, 128], [128]], "Input Dims": [[352, 128], [128, 128], [128]], "Ev Idx": %d
    }
  },
`, name, ts, 40-len(name), i, i, i)
			ts += 2
		}
		fmt.Fprintf(&b, `  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 543, "tid": 568,
    "ts": %.3f, "dur": 4.435,
    "args": {
      "External id": %d, "cbid": 211, "correlation": %d
    }
  },
  {
    "ph": "s", "id": %d, "pid": 543, "tid": 568, "ts": %.3f,
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)", "pid": 0, "tid": 7,
    "ts": %.3f, "dur": 1.632,
    "args": {
      "External id": %d, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": %d, "registers per thread": 168, "blocks per SM": 0.878788, "warps per SM": 15.515152, "grid": [1, 4, 128], "block": [32, 4, 1], "est. achieved occupancy %%": 19
    }
  },
`, ts, i, i+1, i+1, ts, ts+6, i, i+1)
		ts += 60
	}
	return []byte(strings.TrimSuffix(b.String(), ",\n"))
}

// A 2 GB trace must fit 400 MB, collector's share included: at most a tenth of the file may stay.
func TestRecordsAreCompact(t *testing.T) {
	const size = 48 << 20
	body := typicalEvents()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tr, err := trace.Read(endless(body, size))
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > size/10 {
		t.Errorf("%d MB stay of %d MB", kept>>20, size>>20)
	}
	runtime.KeepAlive(tr)
}

func BenchmarkRead(b *testing.B) {
	body := typicalEvents()
	const size = 64 << 20
	data, err := io.ReadAll(endless(body, size))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data []byte
	}{{"plain", data}, {"gzip", pack(b, data)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := trace.Read(bytes.NewReader(c.data)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	s := newSynth()
	s.step(1, func() { s.dense(2, 30); s.item(); s.call("cudaMalloc", 9) })
	f.Add(s.json())
	f.Add(pack(f, s.json()))
	f.Add([]byte(`[` + oneOp + `]`))
	f.Add([]byte(`{"traceEvents":[{"ph":"X","cat":"kernel","name":"a\\\"b","ts":-1e3,"dur":1.5,"args":{"correlation":-1,"bytes":99999999999}}],"deviceProperties":[{}]}`))
	f.Add([]byte(`{"deviceProperties":[{"name":[1]}],"traceEvents":[{"args":[{}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			tr, err := trace.Read(bytes.NewReader(data))
			if err != nil {
				return
			}
			r, err := report.Diagnose(tr)
			if err != nil {
				return
			}
			if r.GPUBusyShare < 0 || r.GPUBusyShare > 1.0001 {
				t.Errorf("busy share %v", r.GPUBusyShare)
			}
			if err := r.WriteText(io.Discard, report.Text{Breakdown: true}); err != nil {
				t.Error(err)
			}
			if err := r.WriteHTML(io.Discard); err != nil {
				t.Error(err)
			}
		}, data)
	})
}

// A hundred thousand threads with an operator and a call each: short lists must stay short.
func TestManyThreadsAreCheap(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for i := range 100_000 {
		fmt.Fprintf(&b, `{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":%d,"ts":%d,"dur":5},{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":%d,"ts":%d,"dur":2},`, i, 10*i, i, 10*i+1)
	}
	b.WriteString(oneOp + "]")
	text := b.String()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tr, err := trace.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 100<<20 || len(tr.Threads) != 100_000 {
		t.Errorf("%d threads keep %d MB", len(tr.Threads), kept>>20)
	}
}

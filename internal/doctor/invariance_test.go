package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/doctor/report"
	"haul/internal/doctor/trace"
)

// sameReport compares what two traces of one run give; scale is the second's time unit in the
// first's.
func sameReport(t testing.TB, got, want *report.Report, scale float64) {
	t.Helper()
	// Times are whole nanoseconds: scaled ones are rounded, a part in a hundred thousand of a short
	// step.
	if math.Abs(got.StepMS-want.StepMS*scale) > 1e-5*want.StepMS*scale || math.Abs(got.GPUBusyShare-want.GPUBusyShare) > 1e-5 {
		t.Errorf("step %v ms, busy %v, want %v, %v", got.StepMS, got.GPUBusyShare, want.StepMS*scale, want.GPUBusyShare)
	}
	if fmt.Sprint(got.Recorded) != fmt.Sprint(want.Recorded) || len(got.Findings) != len(want.Findings) {
		t.Fatalf("%v %v, want %v %v", got.Recorded, costsOf(got), want.Recorded, costsOf(want))
	}
	for i, f := range got.Findings {
		w := want.Findings[i]
		if f.ID != w.ID || f.Severity != w.Severity || math.Abs(f.SavesMS-w.SavesMS*scale) > 1e-4*w.SavesMS*scale {
			t.Errorf("finding %d: %s %s %v, want %s %s %v", i, f.ID, f.Severity, f.SavesMS, w.ID, w.Severity, w.SavesMS*scale)
		}
	}
}

// Events may come in any order: a profiler flushes its threads' buffers as it likes.
func TestTheOrderOfEventsDoesNotMatter(t *testing.T) {
	for _, c := range truths {
		if c.stepMS > 600 { // the largest adds time and no kind of cause
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			want := reportOf(t, c.name)
			raw := readRaw(t, recording(c.name))
			rng := rand.New(rand.NewPCG(1, 2))
			rng.Shuffle(len(raw.Events), func(i, j int) { raw.Events[i], raw.Events[j] = raw.Events[j], raw.Events[i] })
			data, err := json.Marshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			sameReport(t, diagnose(t, data), want, 1)
		})
	}
}

// A run that is slower in every part has the same causes: no rule depends on absolute times.
func TestTheUnitOfTimeDoesNotMatter(t *testing.T) {
	for _, c := range truths {
		if c.stepMS > 150 { // the large ones add time and no kind of cause
			continue
		}
		raw := readRaw(t, recording(c.name))
		var first int64 = math.MaxInt64
		for i := range raw.Events {
			if start, _ := raw.Events[i].span(); raw.Events[i].Ts != "" {
				first = min(first, start)
			}
		}
		for _, scale := range []float64{0.25, 8} {
			t.Run(fmt.Sprint(c.name, " ", scale), func(t *testing.T) {
				scaled := rawTrace{raw.Device, slices.Clone(raw.Events)}
				for i := range scaled.Events {
					e := &scaled.Events[i]
					if e.Ts == "" {
						continue
					}
					start, end := e.span()
					e.Ts = microseconds(int64(float64(start-first) * scale))
					if e.Dur != "" {
						e.Dur = microseconds(int64(float64(end-first)*scale) - int64(float64(start-first)*scale))
					}
				}
				data, err := json.Marshal(scaled)
				if err != nil {
					t.Fatal(err)
				}
				sameReport(t, diagnose(t, data), reportOf(t, c.name), scale)
			})
		}
	}
	data := newSynthRun()
	sameReport(t, diagnose(t, bytes.Replace(data, []byte(`{"schemaVersion"`), []byte(`{"displayTimeUnit":"ns","schemaVersion"`), 1)), diagnose(t, data), 1)
}

func newSynthRun() []byte {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() { s.dense(20, 30); s.item() })
	}
	return s.json()
}

// Diagnose itself must stand any trace that the reader lets through: overlapping operators, calls
// that never end, work before its launch, steps inside steps, clocks that jump.
func TestDiagnoseStandsAnyTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkAny(t, anyTrace(125, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }))
	})
}

func FuzzDiagnose(f *testing.F) {
	f.Add([]byte("seed"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 200, 201, 202, 255, 254})
	f.Add(bytes.Repeat([]byte{3, 1, 4, 1, 5, 9, 2, 6}, 60))
	// A choice takes a byte and an event about ten: what is longer than the events there may be
	// changes nothing, and the fuzzer would spend its time on shortening it.
	const events = 40
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 12*events {
			t.Skip("longer than any choice")
		}
		at := 0
		checkAny(t, anyTrace(events, func(n int) int {
			if at >= len(data) {
				return 0
			}
			at++
			return int(data[at-1]) % n
		}))
	})
}

// anyTrace makes at most `most` events from small choices.
func anyTrace(most int, pick func(n int) int) string {
	names := []string{"aten::add", "aten::to", "aten::item", "aten::zeros", trace.BackwardPrefix + ": AddBackward0", "aten::pad", "aten::masked_fill", "c10d::allreduce_"}
	calls := []string{"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaMalloc", "cudaFree", "cudaStreamBeginCapture", "cudaStreamEndCapture", "hipGraphLaunch", "cudaGetDevice"}
	works := []struct{ cat, name string }{{"kernel", "k"}, {"kernel", "ampere_sgemm"}, {"kernel", "ncclDevKernel_AllReduce"}, {"gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"}, {"gpu_memcpy", "Memcpy DtoH (Device -> Pinned)"}, {"gpu_memset", "Memset"}}
	notes := []string{"ProfilerStep#1", "ProfilerStep#2", "enumerate(DataLoader)#x.__next__", "gloo:all_reduce", "nccl:all_reduce", "mine"}
	clock := []string{"0", "1000000000000", "-50", "1700000000000000"}[pick(4)]
	var b strings.Builder
	for range 5 + pick(most-4) {
		ts := fmt.Sprintf("%s.%03d", clock, pick(250))
		if clock != "-50" {
			ts = fmt.Sprintf("%s%03d.%d", strings.TrimSuffix(clock, "000"), pick(250)+pick(250), pick(10))
		}
		if pick(40) == 0 {
			ts = "0"
		}
		dur := []string{"0", "1", "3.5", "17", "120", "100000"}[pick(6)]
		tid, id := pick(3), pick(30)
		switch pick(6) {
		case 0, 1:
			fmt.Fprintf(&b, `{"ph":"X","cat":"cpu_op","name":%q,"pid":1,"tid":%d,"ts":%s,"dur":%s,"args":{"Sequence number":%d,"Input Dims":[[%d]]}},`, names[pick(len(names))], tid, ts, dur, pick(9), pick(3))
		case 2:
			fmt.Fprintf(&b, `{"ph":"X","cat":"cuda_runtime","name":%q,"pid":1,"tid":%d,"ts":%s,"dur":%s,"args":{"correlation":%d}},`, calls[pick(len(calls))], tid, ts, dur, id)
		case 3, 4:
			w := works[pick(len(works))]
			fmt.Fprintf(&b, `{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":7,"ts":%s,"dur":%s,"args":{"correlation":%d,"bytes":%d,"device":%d,"blocks per SM":%d}},`, w.cat, w.name, pick(2), ts, dur, id, pick(3)*1<<20, pick(2), pick(3))
		default:
			cat := []string{"user_annotation", "python_function", "overhead"}[pick(3)]
			name := notes[pick(len(notes))]
			if cat == "python_function" {
				name = "a.py(3): " + name
			}
			fmt.Fprintf(&b, `{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":%d,"ts":%s,"dur":%s},`, cat, name, tid, ts, dur)
		}
	}
	return "[" + b.String() + oneOp + "]"
}

// failer is the common interface of testing and rapid.
type failer interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func checkAny(t failer, text string) {
	tr, err := trace.Read(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	r, err := report.Diagnose(tr)
	if err != nil {
		return
	}
	if !(r.GPUBusyShare >= 0 && r.GPUBusyShare <= 1.0001) || !(r.StepMS > 0) || math.IsInf(r.StepMS, 0) {
		t.Errorf("busy %v of %v ms", r.GPUBusyShare, r.StepMS)
	}
	idle, sum := r.StepMS*(1-r.GPUBusyShare), 0.0
	for _, i := range r.Idle {
		if !(i.MS >= 0) {
			t.Errorf("idle %+v", i)
		}
		sum += i.MS
	}
	if len(r.Breakdown.GPUs) > 0 && math.Abs(sum-idle) > 1e-5*r.StepMS {
		t.Errorf("the kinds of idle time sum to %v of %v ms: %s", sum, idle, text)
	}
	for i, f := range r.Findings {
		if !(f.SavesMS > 0) || f.SavesMS > 1.0001*r.StepMS || i > 0 && f.SavesMS > r.Findings[i-1].SavesMS {
			t.Errorf("%s costs %v of %v ms", f.ID, f.SavesMS, r.StepMS)
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("%v", err)
	}
	if err := r.WriteText(io.Discard, report.Text{Breakdown: true}); err != nil {
		t.Errorf("%v", err)
	}
	if err := r.WriteHTML(io.Discard); err != nil {
		t.Errorf("%v", err)
	}
	other, err := trace.Read(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v", err)
	}
	again, err := report.Diagnose(other)
	if err != nil {
		t.Fatalf("%v", err)
	}
	again.File = "rank1.json"
	j := report.JoinRanks([]*report.Report{r, again})
	if err := j.WriteText(io.Discard, report.Text{}); err != nil {
		t.Errorf("%v", err)
	}
	if err := j.WriteHTML(io.Discard); err != nil {
		t.Errorf("%v", err)
	}
	if err := report.Compare(r, again).WriteText(io.Discard); err != nil {
		t.Errorf("%v", err)
	}
}

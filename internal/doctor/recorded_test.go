package doctor

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
)

// unmarked runs a body without a profiler step.
func unmarked(body func(s *synth)) *synth {
	s := newSynth()
	body(s)
	return s
}

// What was recorded is said first, and withholds the verdict.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		name string
		want []string
		s    *synth
	}{
		{"warm", []string{}, unmarked(func(s *synth) { s.dense(40, 100) })},
		{"a cold start", []string{"cold-start"}, unmarked(func(s *synth) {
			s.op("aten::linear", "", 15, func() { s.call("cudaStreamCreateWithFlags", 90_000); s.launch("k", 50, 4) })
			s.dense(40, 100)
		})},
		{"kernels being loaded", []string{"cold-start"}, unmarked(func(s *synth) {
			for range 5 {
				s.op("aten::linear", "", 15, func() { s.issue("cudaLaunchKernel", "kernel", "k", 20_000, 50, `"stream":7`) })
				s.dense(10, 50)
			}
		})},
		{"a graph being captured", []string{"graph-capture"}, unmarked(func(s *synth) {
			s.dense(20, 50)
			s.call("cudaStreamBeginCapture", 3)
			for range 100 {
				s.op("aten::add", "", 20, func() { s.call("cudaLaunchKernel", 4) })
			}
			s.call("cudaStreamEndCapture", 10)
			s.dense(20, 50)
		})},
		{"a step cut out of a run", []string{"cut-out"}, unmarked(func(s *synth) {
			s.gpu = s.now + 9000 // what was queued before ends only then
			s.dense(40, 100)
		})},
		{"a copy behind work from before", []string{"cut-out"}, unmarked(func(s *synth) {
			s.op("aten::to", "", 10, func() {
				s.correlation++
				s.emit("cuda_runtime", "cudaMemcpyAsync", s.now, 9000, fmt.Sprintf(`"correlation":%d`, s.correlation))
				s.emit("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", s.now+8990, 5, fmt.Sprintf(`"correlation":%d,"bytes":704`, s.correlation))
				s.now += 9000
				s.gpu = s.now
			})
			s.dense(40, 100)
		})},
		{"copies alone", []string{}, unmarked(func(s *synth) {
			for range 40 {
				s.op("aten::to", "", 10, func() {
					s.issue("cudaMemcpyAsync", "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 5, 1, `"bytes":484`)
				})
				s.now += 30
			}
		})},
		{"a toy", []string{"toy"}, unmarked(func(s *synth) {
			for range 5 {
				s.kernelOp("aten::add", "", 2, 0.1)
				s.now += 30
			}
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := diagnose(t, c.s.json())
			checkFindings(t, r)
			if !slices.Equal(r.Recorded, c.want) {
				t.Errorf("recorded %v, want %v; idle %v", r.Recorded, c.want, r.Idle)
			}
			for _, f := range r.Findings {
				if len(c.want) > 0 && f.Severity != rule.Note {
					t.Errorf("%s is %s of what allows no verdict", f.ID, f.Severity)
				}
			}
			var b bytes.Buffer
			if err := r.WriteText(&b, report.Text{}); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Split(b.String(), "\n"); len(c.want) > 0 && (!strings.HasPrefix(lines[1], "This is a") || !strings.Contains(b.String(), "No verdict")) {
				t.Errorf("not said first:\n%s", b.String())
			}
		})
	}
}

// One blocking copy in the middle of a step, with nothing recorded on the GPU meanwhile.
func TestOneLongWait(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() {
			s.dense(20, 100)
			s.now = max(s.now, s.gpu)
			s.op("aten::to", "", 10, func() {
				s.correlation++
				id := fmt.Sprintf(`"correlation":%d`, s.correlation)
				s.emit("cuda_runtime", "cudaMemcpyAsync", s.now, 6000, id)
				s.emit("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", s.now+5990, 5, id+`,"bytes":704`)
				s.now += 6000
				s.gpu = s.now
			})
			s.dense(20, 100)
		})
	}
	r := diagnose(t, s.json())
	if got := ids(r); len(got) == 0 || got[0] != "long-wait" || r.Findings[0].Severity != rule.Critical || !near(r.Findings[0].SavesMS, 6) {
		t.Fatalf("findings %v, want long-wait at 6 ms", costsOf(r))
	}
	if len(r.Findings) > 1 { // what the wait holds is charged once
		t.Errorf("findings %v", costsOf(r))
	}
	if e := strings.Join(r.Findings[0].Evidence, "; "); !strings.Contains(e, "cudaMemcpyAsync") || !strings.Contains(e, "aten::to") {
		t.Errorf("evidence %s", e)
	}
}

// The CPU issues three steps at once; the GPU works on them long after.
func TestRunAheadCPU(t *testing.T) {
	s := newSynth()
	for n := range 4 {
		start, at := s.now, s.hold()
		for range 20 {
			s.op("aten::linear", "", 15, func() { s.launch("nvjet_a", 500, 8) })
		}
		s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	}
	r := diagnose(t, s.json())
	if !near(r.StepMS, 10) || r.GPUBusyShare < 0.99 || r.PerStep.Kernels != 20 {
		t.Errorf("step %v ms, busy %v, %v kernels; want the GPU's 10 ms", r.StepMS, r.GPUBusyShare, r.PerStep.Kernels)
	}
	if len(r.Findings) > 0 || !strings.Contains(strings.Join(r.Remarks, " "), "runs ahead") {
		t.Errorf("findings %v, remarks %v", costsOf(r), r.Remarks)
	}
}

// A first step that compiles and loads is left out; the verdict is on the warm ones.
func TestColdStepsAreLeftOut(t *testing.T) {
	s := newSynth()
	for n := range 5 {
		s.step(n, func() {
			if n == 0 {
				s.op("aten::linear", "", 15, func() { s.call("cuModuleLoadData", 80_000) })
			}
			s.dense(40, 100)
		})
	}
	r := diagnose(t, s.json())
	if r.Steps != 4 || len(r.Recorded) > 0 || !near(r.StepMS, 4) {
		t.Errorf("%d steps of %v ms, recorded %v", r.Steps, r.StepMS, r.Recorded)
	}
}

// hip renames the calls as ROCm spells them and takes away what its profiler does not tell.
func hip(data []byte) []byte {
	text := strings.NewReplacer(`"cudaLaunchKernel"`, `"hipExtModuleLaunchKernel"`, `"cudaMemcpyAsync"`, `"hipMemcpyWithStream"`, `"cudaStreamSynchronize"`, `"hipStreamSynchronize"`,
		`"blocks per SM":0.05`, `"grid":[15,1,1]`, "NVIDIA H200", "AMD Instinct MI300X", `"computeMinor":0,"numSms":132`, `"computeMinor":4,"numSms":304`).Replace(string(data))
	return []byte(text)
}

// ROCm records the same as CUDA: calls, copies, waits, and how full the GPU is, from the grid.
func TestROCm(t *testing.T) {
	build := func() []byte {
		s := newSynth()
		for n := range 3 {
			s.step(n, func() {
				for i := range 200 {
					s.kernelOp("aten::linear", string(rune('a'+i)), 4, 0.05)
				}
				s.item()
			})
		}
		return s.json()
	}
	want, got := diagnose(t, build()), diagnose(t, hip(build()))
	if got.StepMS != want.StepMS || got.PerStep != want.PerStep || !slices.Equal(ids(got), ids(want)) {
		t.Errorf("%+v %v\nwant %+v %v", got.PerStep, costsOf(got), want.PerStep, costsOf(want))
	}
	if got.Findings[0].ID != "small-batch" || got.GPU != "AMD Instinct MI300X" {
		t.Errorf("findings %v on %s", costsOf(got), got.GPU)
	}
}

// exchange adds an all-reduce kernel on a separate stream.
func (s *synth) exchange(start, dur float64, bytes int) {
	s.correlation++
	id := fmt.Sprintf(`"correlation":%d`, s.correlation)
	s.emit("cuda_runtime", "cudaLaunchKernel", s.now, 5, id)
	s.emit("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", start, dur,
		id+fmt.Sprintf(`,"stream":20,"Collective name":"allreduce","In msg nelems":%d,"Group size":8,"dtype":"Float","Process Group Name":"dp"`, bytes/4))
	s.now += 5
}

func TestCommunicationIsNoCompute(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.gpu = s.now
		s.step(n, func() {
			s.dense(40, 100)
			s.exchange(s.gpu-1000, 3000, 64<<20) // 1 ms during compute, 2 ms alone
			s.gpu += 2000
		})
	}
	r := diagnose(t, s.json())
	if got := ids(r); len(got) == 0 || got[0] != "comm-exposed" || !near(r.Findings[0].SavesMS, 2) {
		t.Fatalf("findings %v, want comm-exposed at 2 ms", costsOf(r))
	}
	b := r.Breakdown
	if !near(b.CommExposedShare*r.StepMS, 2) || !near(b.CommHiddenShare*r.StepMS, 1) || len(b.Collectives) != 1 || b.Collectives[0].Group != "dp" || !near(b.Collectives[0].MB, 64) {
		t.Errorf("%+v", b)
	}
	if e := strings.Join(r.Findings[0].Evidence, "; "); !strings.Contains(e, "64.0 MB") || !strings.Contains(e, "over 8 ranks") || !strings.Contains(e, "GB/s of bus bandwidth") {
		t.Errorf("evidence %s", e)
	}
}

// Preprocessing in Python is named by the function that holds it, in the user's own words.
func TestPythonBoundNamesItsPlace(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() {
			start := s.now
			s.now += 5000
			s.emit("python_function", "train.py(12): main", start-1, 5002, "")
			s.emit("python_function", "data/prepare.py(235): preprocess", start, 5000, "")
			s.emit("python_function", "<built-in method sleep of module object at 0x7f>", start+10, 4900, "")
			s.dense(40, 50)
		})
	}
	r := diagnose(t, s.json())
	if got := ids(r); len(got) == 0 || got[0] != "python-bound" || !near(r.Findings[0].SavesMS, 5) {
		t.Fatalf("findings %v", costsOf(r))
	}
	if w := r.Findings[0].Where; !strings.HasPrefix(w, "data/prepare.py:235 preprocess, in <built-in method sleep") || !strings.Contains(w, "called from train.py:12 main") {
		t.Errorf("where %q", w)
	}
	if len(r.Gaps) == 0 || !strings.Contains(r.Gaps[0].Where, "prepare.py:235") {
		t.Errorf("gaps %+v", r.Gaps)
	}
}

// The kinds of idle time sum to the idle time, and the findings hold no more than it and the GPU
// time that some of them waste.
func TestIdleTimeIsCountedOnce(t *testing.T) {
	for _, c := range truths {
		r := diagnoseFile(t, recording(c.name))
		var sum float64
		for _, i := range r.Idle {
			sum += i.MS
		}
		idle := r.StepMS * (1 - r.GPUBusyShare)
		if diff := sum - idle; diff > 1e-6*r.StepMS || diff < -1e-6*r.StepMS {
			t.Errorf("%s: the kinds sum to %v ms of %v idle", c.name, sum, idle)
		}
		var held float64
		for _, f := range r.Findings {
			if f.ID != "fp32-matmul" && f.ID != "comm-exposed" && f.ID != "copy-exposed" && f.ID != "pageable-copy" {
				held += f.SavesMS
			}
		}
		if held > idle*1.0001 {
			t.Errorf("%s: findings hold %v ms of %v idle", c.name, held, idle)
		}
	}
}

// One event at 0 among clocks since 1970 must neither lengthen the step nor end the program.
func TestAStrayEvent(t *testing.T) {
	s := newSynth()
	s.base = 1.7e15
	s.dense(40, 100)
	text := strings.Replace(string(s.json()), `"traceEvents":[`, `"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::add","pid":7,"tid":1,"ts":0,"dur":1},`, 1)
	r := diagnose(t, []byte(text))
	if r.StepMS > 10 || !strings.Contains(strings.Join(r.Remarks, ";"), "far from all the others") {
		t.Errorf("step %v ms, remarks %v", r.StepMS, r.Remarks)
	}
	s.step(1, func() { s.kernelOp("aten::add", "", 5, 1) })
	diagnose(t, []byte(strings.Replace(string(s.json()), `"traceEvents":[`, `"traceEvents":[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#0","pid":7,"tid":1,"ts":0,"dur":1.7e15},`, 1)))
}

// Control characters in names must not reach a terminal.
func TestNoControlCharacters(t *testing.T) {
	s := newSynth()
	s.shapes = false
	s.emit("python_function", "evil\x1b[2J.py(3): f\x07", s.now, 5000, "")
	s.now += 3000
	for range 40 {
		s.kernelOp("aten::add\x1b]0;owned\x07\u009b31m", "", 2, 4)
		s.op("aten::x\u202e", "", 40, nil)
	}
	text := strings.ReplaceAll(string(s.json()), `\x`, `\u00`)
	text = strings.ReplaceAll(text, `\u001b`, "\x1b")
	text = strings.ReplaceAll(text, `\u0007`, "\x07")
	text = strings.ReplaceAll(text, `\u009b`, "\u009b")
	text = strings.ReplaceAll(text, `\u202e`, "\u202e")
	text = strings.ReplaceAll(text, `\a`, "\x07")
	r := diagnose(t, []byte(text))
	var b bytes.Buffer
	if err := r.WriteText(&b, report.Text{Breakdown: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "aten::add") {
		t.Fatalf("the name is not shown:\n%s", b.String())
	}
	for _, c := range b.String() {
		if c != '\n' && (c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == 0x202e) {
			t.Fatalf("%q in\n%q", c, b.String())
		}
	}
}

// A step of microseconds is reported with significant digits.
func TestMicrosecondsAreNotZero(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() {
			for range 3 {
				s.op("aten::add", "", 0.4, func() { s.issue("cudaLaunchKernel", "kernel", "k", 0.2, 0.1, `"stream":7`) })
			}
		})
	}
	var b bytes.Buffer
	r := diagnose(t, s.json())
	if err := r.WriteText(&b, report.Text{Breakdown: true}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.SplitN(b.String(), "\n", 2)[0], "0.00 ms") || phrase.Figure(0.00031) != "0.00031" || phrase.Figure(0.012) != "0.012" || phrase.Figure(1.234) != "1.23" || phrase.Figure(0) != "0.00" {
		t.Errorf("%s\n%s %s %s", b.String(), phrase.Figure(0.00031), phrase.Figure(0.012), phrase.Figure(1.234))
	}
}

// Launches that left no GPU work, and a profiler that reached no GPU at all.
func TestMissingGPUEvents(t *testing.T) {
	s := newSynth()
	s.step(1, func() {
		s.dense(40, 100)
		for range 40 {
			s.op("aten::add", "", 10, func() { s.correlation++; s.call("cudaLaunchKernel", 4) })
		}
	})
	if m := strings.Join(diagnose(t, s.json()).Remarks, "; "); !strings.Contains(m, "40 of 80 launches have no GPU work") {
		t.Errorf("remarks %s", m)
	}
	s = newSynth()
	s.step(1, func() {
		for range 40 {
			s.op("aten::add", "", 10, func() { s.call("cudaLaunchKernel", 4) })
		}
	})
	if m := strings.Join(diagnose(t, s.json()).Remarks, "; "); !strings.Contains(m, "could not reach the GPU's counters") {
		t.Errorf("remarks %s", m)
	}
}

// Accelerators with other runtimes: device events are recognised by category, calls by their names
// as far as possible.
func TestOtherAccelerators(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() {
			for range 300 {
				s.kernelOp("aten::add", "", 2, 4)
			}
			s.wait()
		})
	}
	want := diagnose(t, s.json())
	for _, vendor := range []string{"mtia", "xpu"} {
		device := map[string]string{"mtia": "mtia_ccp_events", "xpu": "kernel"}[vendor]
		text := strings.NewReplacer(`"cat":"kernel"`, `"cat":"`+device+`"`, `"cat":"cuda_runtime"`, `"cat":"`+vendor+`_runtime"`,
			"cudaLaunchKernel", "urEnqueueWork", "cudaStreamSynchronize", "urQueueWaitFinish").Replace(string(s.json()))
		got := diagnose(t, []byte(text))
		if got.PerStep != want.PerStep || !slices.Equal(ids(got), ids(want)) {
			t.Errorf("%s: %+v %v, want %+v %v", vendor, got.PerStep, costsOf(got), want.PerStep, costsOf(want))
		}
	}
}

// A step whose only kernel has no length has no period on the GPU.
func TestWorkOfNoLength(t *testing.T) {
	r := diagnose(t, []byte(`[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":10,"dur":10},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":11,"dur":5},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":12,"dur":2,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":50,"dur":0,"args":{"correlation":1}}]`))
	if r.StepMS != 0.01 {
		t.Errorf("step %v ms", r.StepMS)
	}
}

// A trace of haul profile contains no Python. For a worker without an op, the report must not
// advise to leave the Python loop.
func TestAStepOfHaulHasNoPython(t *testing.T) {
	events := `[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#0","pid":1,"tid":0,"ts":0,"dur":1000},
		{"ph":"X","cat":"cpu_op","name":"linear","pid":1,"tid":1,"ts":0,"dur":400},{"ph":"X","cat":"cpu_op","name":"adamw","pid":1,"tid":1,"ts":700,"dur":300}]`
	for head, python := range map[string]bool{`{`: true, `{"haul":{"device":"cpu","workers":1},`: false} {
		r := diagnose(t, []byte(head+`"traceEvents":`+events+`}`))
		var b strings.Builder
		if err := r.WriteText(&b, report.Text{}); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(ids(r), "python-bound"); got != python || strings.Contains(b.String(), "Python") != python || strings.Contains(b.String(), "waits for the others") == python {
			t.Errorf("%s: %v\n%s", head, ids(r), b.String())
		}
	}
}

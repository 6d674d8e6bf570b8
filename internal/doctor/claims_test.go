package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
)

// What a report claims must be true of traces that others than the rules' own makers bend: each
// case here plants a cause or none, and the words that would be false are looked for.

// overheadOf writes the profiler's record of what held a call back.
func (s *synth) overheadOf(name string, dur float64) { s.emit("overhead", name, s.now, dur, "") }

// A launch that waits for a full queue is recorded as overhead, but it is not the profiler's work.
func TestAFullQueueIsNotTheProfilers(t *testing.T) {
	for name, profilers := range map[string]bool{"Command Buffer Full": false, "Lazy Function Loading": false,
		"Buffer Flush": true, "Activity Buffer Request": true} {
		s := newSynth()
		for n := range 3 {
			s.step(n, func() { s.overheadOf(name, 500); s.dense(40, 100) })
		}
		text := strings.Join(diagnose(t, s.json()).Remarks, "; ")
		if strings.Contains(text, "profiler's own work") != profilers {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// xpu renames calls and copies as PyTorch writes them on Intel's GPUs.
func xpu(data []byte) []byte {
	return []byte(strings.NewReplacer(`"cuda_runtime"`, `"xpu_runtime"`, "cudaLaunchKernel", "urEnqueueKernelLaunch",
		"cudaMemcpyAsync", "urEnqueueUSMMemcpy", `"cudaStreamSynchronize"`, `"urQueueFinish"`, `"correlation":0`, `"correlation":99999`,
		"DtoH (Device -> Pinned)", "D2M (DEVICE -> MEMORY(Unknown))", "HtoD (Pinned -> Device)", "M2D (MEMORY(Unknown) -> DEVICE)").Replace(string(data)))
}

// Intel's GPUs give what NVIDIA's give: reads of single values, uploads, waits, and no launches
// without work.
func TestXPU(t *testing.T) {
	for name, body := range map[string]func(s *synth){
		"reads": func(s *synth) {
			for range 60 {
				s.kernelOp("aten::sum", "", 4, 4)
				s.item()
			}
		},
		"uploads": func(s *synth) {
			for range 80 {
				s.op("aten::to", "", 10, func() { s.copy("HtoD (Pinned -> Device)", 900, 2) })
			}
			s.dense(10, 50)
		},
	} {
		s := newSynth()
		for n := range 3 {
			s.step(n, func() { body(s) })
		}
		want, got := diagnose(t, s.json()), diagnose(t, xpu(s.json()))
		if got.PerStep != want.PerStep || !slices.Equal(costsOf(got), costsOf(want)) || !slices.Equal(got.Remarks, want.Remarks) {
			t.Errorf("%s: %+v %v %v; want %+v %v %v", name, got.PerStep, costsOf(got), got.Remarks, want.PerStep, costsOf(want), want.Remarks)
		}
		if len(want.Findings) == 0 {
			t.Errorf("%s: nothing found", name)
		}
	}
}

// stage issues kernels to one of several GPUs; none starts before a moment.
func (s *synth) stage(device, n int, us, from float64) float64 {
	for range n {
		s.op("aten::linear", "", 15, func() {
			s.correlation++
			s.emit("cuda_runtime", "cudaLaunchKernel", s.now, 5, fmt.Sprintf(`"correlation":%d`, s.correlation))
			s.now += 5
			from = max(from, s.now)
			s.emit("kernel", "nvjet", from, us, fmt.Sprintf(`"correlation":%d,"device":%d`, s.correlation, device))
			from += us
		})
	}
	s.gpu = max(s.gpu, from)
	return from
}

// A model split over two GPUs that take turns: each waits for the other, which was recorded.
// Neither a cut recording nor a wait is to blame.
func TestGPUsThatTakeTurns(t *testing.T) {
	for _, read := range []bool{false, true} {
		s := newSynth()
		from := 0.0
		for n := range 4 {
			s.step(n, func() {
				from = s.stage(0, 20, 200, from)
				from = s.stage(1, 20, 200, from)
				from = s.stage(0, 20, 200, from)
				if read {
					s.item()
				} else {
					s.wait()
				}
			})
		}
		r := diagnose(t, s.json())
		if len(r.Recorded) > 0 || len(r.Findings) > 0 || idleOf(r, "other-gpu") < 0.8*r.StepMS*(1-r.GPUBusyShare) {
			t.Errorf("read %v: recorded %v, findings %v, idle %+v", read, r.Recorded, costsOf(r), r.Idle)
		}
	}
}

// Operators on the CPU's own tensors hold the GPU up and launch nothing: larger kernels or a graph
// would not help. Views launch nothing either and are on the way to a launch, also where one
// operator holds many.
func TestOperatorsOnTheCPU(t *testing.T) {
	for _, c := range []struct {
		name, want string
		body       func(s *synth)
	}{
		{"compute", "python-bound", func(s *synth) {
			for range 30 {
				s.op("aten::cumsum", "", 300, nil)
			}
		}},
		{"a function of autograd's in Python", "python-bound", func(s *synth) {
			s.op("autograd::engine::evaluate_function: MineBackward", "", 20, func() { s.launch("k", 5, 8); s.now += 8975; s.launch("k", 5, 8) })
		}},
		{"views", "launch-bound", func(s *synth) {
			for range 1000 {
				s.op("aten::select", "", 8, nil)
			}
		}},
		{"many views in one", "launch-bound", func(s *synth) {
			for range 10 {
				s.op("aten::unflatten_dense_tensors", "", 10, func() {
					for range 100 {
						s.op("aten::narrow", "", 8, nil)
					}
				})
			}
		}},
	} {
		s := newSynth()
		for n := range 4 {
			s.step(n, func() { c.body(s); s.dense(40, 300) })
		}
		r := diagnose(t, s.json())
		if len(r.Findings) != 1 || r.Findings[0].ID != c.want || !near(r.Findings[0].Share, 9000/(9000+12000.)) {
			t.Errorf("%s: %v, idle %v", c.name, costsOf(r), r.Idle)
		}
		if len(r.Findings) == 0 {
			continue
		}
		text := strings.Join(r.Findings[0].Evidence, "; ") + r.Gaps[0].Doing
		if named := strings.Count(text, "aten::cumsum"); c.name == "compute" && named != 2 {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}

// A finding names the operators that the GPU waited for. A read that waits while the GPU works
// takes longer than all of them and delays nothing. But it keeps the CPU from running ahead, and if
// that would hide the launches the remedy is to wait less.
func TestAWaitThatKeepsTheCPUFromRunningAhead(t *testing.T) {
	for _, c := range []struct {
		name   string
		remedy string
		dense  int
		end    func(s *synth)
	}{
		{"read", "Wait less", 20, func(s *synth) { s.item() }},
		{"synchronize", "Wait less", 20, func(s *synth) { s.wait() }},
		{"no work to hide behind", "Fewer, larger kernels", 1, func(s *synth) { s.item() }},
	} {
		s := newSynth()
		for n := range 4 {
			s.step(n, func() {
				for range 60 {
					s.kernelOp("aten::add", "", 2, 8)
				}
				s.dense(c.dense, 200)
				c.end(s)
			})
		}
		r := diagnose(t, s.json())
		if len(r.Findings) != 1 || r.Findings[0].ID != "launch-bound" || !strings.HasPrefix(r.Findings[0].Evidence[2], "most in aten::add ") ||
			!strings.HasPrefix(r.Findings[0].Remedy, c.remedy) {
			t.Fatalf("%s: %v", c.name, costsOf(r))
		}
		text := strings.Join(r.Findings[0].Evidence, "; ")
		wait := map[string]string{"read": "(most in aten::item)", "synchronize": "(most in cudaStreamSynchronize)"}[c.name]
		if !strings.Contains(text, wait) || (wait == "") == strings.Contains(text, "run ahead") {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}

// A first step that compiles, or waits for workers to start, is the start and not part of the run.
// A pause in the middle is part of the run, and the report mentions that the steps are uneven.
func TestALongFirstStep(t *testing.T) {
	for _, c := range []struct {
		at, want int
		words    string
	}{{0, 4, "1 step at the start left out: cold, up to 51 times the middle step"}, {2, 5, "(the middle one 4.02, the longest 204)"}} {
		s := newSynth()
		for n := range 5 {
			s.step(n, func() {
				if n == c.at {
					s.now += 200_000
				}
				s.dense(40, 100)
			})
		}
		r := diagnose(t, s.json())
		var b strings.Builder
		if err := r.WriteText(&b, report.Text{}); err != nil {
			t.Fatal(err)
		}
		if r.Steps != c.want || len(r.Findings) != c.want-4 || !strings.Contains(b.String(), c.words) {
			t.Errorf("%d: %d steps of %v ms, %v\n%s", c.at, r.Steps, r.StepMS, costsOf(r), b.String())
		}
		if c.at == 2 && !strings.Contains(b.String(), "in 1 of 5 steps") {
			t.Error(b.String())
		}
		for _, g := range r.Gaps { // the few microseconds before a first kernel are the way to it
			if strings.HasPrefix(g.Doing, "Python") && g.MS < 1 && g.At < 0.5 {
				t.Errorf("gap of %v ms: %s", g.MS, g.Doing)
			}
		}
	}
}

// A recording without numbers that join calls and work, or without calls, still shows the CPU's
// activity in a gap: it is neither queued work nor Python.
func TestGapsWithoutCalls(t *testing.T) {
	build := func(body func(s *synth)) string {
		s := newSynth()
		for n := range 4 {
			s.step(n, func() { body(s) })
		}
		return string(s.json())
	}
	numberless := strings.ReplaceAll(build(func(s *synth) { s.dense(40, 50); s.now = s.gpu + 3000; s.dense(40, 50) }), `"correlation":`, `"other":`)
	if r := diagnose(t, []byte(numberless)); !slices.Equal(ids(r), []string{"python-bound"}) {
		t.Errorf("without numbers: %v, idle %+v", costsOf(r), r.Idle)
	}
	small := build(func(s *synth) {
		for range 100 {
			s.kernelOp("aten::add", "", 4, 8)
		}
	})
	if r := diagnose(t, []byte(strings.ReplaceAll(small, `"correlation":`, `"other":`))); !slices.Equal(ids(r), []string{"launch-bound"}) {
		t.Errorf("small kernels without numbers: %v, idle %+v", costsOf(r), r.Idle)
	}
	var kept []string
	for line := range strings.Lines(small) {
		if !strings.Contains(line, `"cuda_runtime"`) {
			kept = append(kept, line)
		}
	}
	if r := diagnose(t, []byte(strings.Join(kept, ""))); !slices.Equal(ids(r), []string{"launch-bound"}) {
		t.Errorf("without calls: %v, idle %+v", costsOf(r), r.Idle)
	}
}

// Where the CPU is ahead the first step is as long as the others: its copy counts, and what is
// measured does not depend on how many steps were recorded.
func TestTheFirstCopyCounts(t *testing.T) {
	for _, steps := range []int{2, 3, 6} {
		s := newSynth()
		for n := range steps {
			start, at := s.now, s.hold()
			s.op("aten::to", "", 10, func() { s.copy("HtoD (Pinned -> Device)", 64<<20, 4000) })
			s.dense(30, 200)
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		if r := diagnose(t, s.json()); !ahead(r) || !near(r.StepMS, 10) || !slices.Equal(ids(r), []string{"copy-exposed"}) || !near(r.Findings[0].SavesMS, 4) {
			t.Errorf("%d steps: ahead %v, %v ms, %v", steps, ahead(r), r.StepMS, costsOf(r))
		}
	}
}

// Without a GPU nothing is launched or waits for one. A loop of thousands of short iterations is
// the place to look at, not a longer iteration next to it, for long operators and for long Python.
func TestALoopWithoutGPU(t *testing.T) {
	for _, c := range []struct {
		pause float64
		want  string
	}{{8, "dispatch-bound"}, {20, "python-bound"}} {
		s := newSynth()
		for n := range 3 {
			start, at := s.now, s.hold()
			s.emit("python_function", "train.py(9): loop", start, 1000*(4+c.pause), "")
			for range 1000 {
				s.op("aten::select", "", 3, nil)
				s.now += c.pause
			}
			s.emit("python_function", "train.py(20): log", s.now, 600, "")
			s.now += 600
			s.op("aten::linear", "", 3000, nil)
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		r := diagnose(t, s.json())
		if !slices.Equal(ids(r), []string{c.want}) || r.Findings[0].Where != "train.py:9 loop" {
			t.Fatalf("%v in %q, want %s", costsOf(r), r.Findings[0].Where, c.want)
		}
		var b strings.Builder
		if err := r.WriteText(&b, report.Text{}); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"launch", "GPU waited"} {
			if text, _, _ := strings.Cut(b.String(), "About the recording"); strings.Contains(text, word) {
				t.Errorf("%q in a report without a GPU:\n%s", word, text)
			}
		}
	}
}

// Compiled code launches outside any operator. The place of a finding includes these launches, and
// the advice to compile is omitted for compiled code.
func TestCompiledCode(t *testing.T) {
	s := newSynth()
	for n := range 4 {
		s.step(n, func() {
			start, at := s.now, s.hold()
			for i := range 100 {
				s.now += 8
				s.issue("cuLaunchKernel", "kernel", fmt.Sprintf("triton_poi_fused_%d", i), 4, 3, `"blocks per SM":4`)
			}
			s.events[at] = s.event("cpu_op", "Torch-Compiled Region: 0/0", start, s.now-start, "")
			s.item()
		})
	}
	r := diagnose(t, s.json())
	if !slices.Equal(ids(r), []string{"launch-bound"}) {
		t.Fatal(costsOf(r))
	}
	text := strings.Join(r.Findings[0].Evidence, "; ")
	if !strings.Contains(text, "outside any operator") || strings.Contains(text, "most in aten::item") || strings.Contains(text, "from 9") || strings.Contains(r.Findings[0].Remedy, "fuse with") {
		t.Errorf("%s\n%s", text, r.Findings[0].Remedy)
	}
}

// Code that is compiled again in the middle of a run is a separate cause, on a GPU and on a CPU. In
// the first step, or in a recording without steps, it is the start.
func TestRecompile(t *testing.T) {
	for _, c := range []struct {
		name     string
		at       []int // steps that compile
		gpu      bool
		findings []string
		recorded []string
	}{
		{"in later steps", []int{2, 4}, true, []string{"recompile"}, []string{}},
		{"on a CPU", []int{2, 4}, false, []string{"recompile"}, []string{}},
		{"never", nil, true, []string{}, []string{}},
		{"at the start alone", []int{0}, true, []string{}, []string{}},
		{"at the start of few steps", []int{0, 7}, true, []string{}, []string{"cold-start"}},
	} {
		s := newSynth()
		steps := 6
		if c.name == "at the start of few steps" {
			steps = 2
		}
		for n := range steps {
			s.step(n, func() {
				if slices.Contains(c.at, n) {
					s.op("dynamo", "", 100, func() {
						s.op("_compile.compile_inner (dynamo_timed)", "", 60_000, func() { s.op("aten::empty", "", 5, nil) })
					})
				}
				if c.gpu {
					s.dense(40, 100)
				} else {
					s.op("aten::linear", "", 4000, nil)
				}
			})
		}
		r := diagnose(t, s.json())
		if !slices.Equal(ids(r), c.findings) || !slices.Equal(r.Recorded, c.recorded) {
			t.Errorf("%s: %v, recorded %v, idle %+v", c.name, costsOf(r), r.Recorded, r.Idle)
		}
		if len(c.findings) > 0 && len(r.Findings) > 0 && !near(r.Findings[0].SavesMS, 20) {
			t.Errorf("%s: %v", c.name, costsOf(r))
		}
	}
}

// A thread that prepares batches is in the loader all the time. It holds the run up only where the
// training loop has nothing else to do, with a GPU and without.
func TestALoaderOnAThreadOfItsOwn(t *testing.T) {
	for _, gpu := range []bool{true, false} {
		for _, waits := range []float64{0, 3000} {
			s := newSynth()
			for n := range 4 {
				start := s.now
				s.step(n, func() {
					s.now += waits // the loop waits for an empty queue
					for range 100 {
						if gpu {
							s.kernelOp("aten::add", "", 2, 8)
						} else {
							s.op("aten::add", "", 20, nil)
						}
					}
				})
				s.tid = 5
				s.emit("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, s.now-start, "")
				s.emit("cpu_op", "aten::stack", start+20, 500, "")
				s.tid = 1
			}
			r := diagnose(t, s.json())
			want := []string{}
			if waits > 0 {
				want = append(want, "loader-starved")
			}
			if gpu {
				want = append(want, "launch-bound")
			}
			if !slices.Equal(ids(r), want) || idleOf(r, "loader") < waits/1000 {
				t.Errorf("gpu %v, waits %v: %v, idle %+v", gpu, waits, costsOf(r), r.Idle)
			}
		}
	}
}

package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// memory records that the allocator allocated or freed bytes; total is the allocated sum
// afterwards.
func (s *synth) memory(addr, bytes int, total *int, device int) {
	*total += bytes
	s.events = append(s.events, fmt.Sprintf(`{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":%d,"ts":%.3f,"args":{"Total Allocated":%d,"Bytes":%d,"Addr":%d,"Device Id":0,"Device Type":%d}}`,
		s.tid, s.base+s.now, *total, bytes, addr, device))
}

func text(t *testing.T, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b, report.Text{Breakdown: true}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const mb = 1 << 20

// Memory at its peak is held by who took it and has not given it back; the rest was there before.
func TestMemoryAtItsPeak(t *testing.T) {
	build := func(leak int) *report.Report {
		s := newSynth()
		total, host := 100*mb, 900*mb
		for n := range 3 {
			s.step(n, func() {
				s.memory(1, 512*mb, &host, 0) // the host's own memory is another matter
				s.op("aten::linear", "", 15, func() { s.launch("nvjet_a", 50, 8); s.memory(10, 30*mb, &total, 1) })
				s.op("aten::gelu", "", 15, func() { s.launch("gelu", 50, 8); s.memory(11, 20*mb, &total, 1); s.memory(12, 5*mb, &total, 1) })
				s.memory(11, -20*mb, &total, 1)
				s.op("autograd::engine::evaluate_function: AddmmBackward0", "", 15, func() { s.launch("nvjet_b", 50, 8); s.memory(13, 40*mb, &total, 1) })
				for _, p := range [][2]int{{10, 30}, {12, 5}, {13, 40}} {
					s.memory(p[0], -p[1]*mb, &total, 1)
				}
				if leak > 0 {
					s.memory(100+n, leak*mb, &total, 1)
				}
				s.memory(1, -512*mb, &host, 0)
			})
		}
		return diagnose(t, s.json())
	}
	k := build(0).Breakdown.Peak
	if k == nil || k.Device != "GPU 0" || k.MB != 175 || k.BeforeMB != 100 || k.GrowsMB != 0 || k.MS <= 0 {
		t.Fatalf("%+v", k)
	}
	want := []analysis.MemoryHolder{
		{What: "backward of AddmmBackward0", Phase: "backward", MB: 40, Pieces: 1},
		{What: "aten::linear", Phase: "forward", MB: 30, Pieces: 1},
		{What: "aten::gelu", Phase: "forward", MB: 5, Pieces: 1},
	}
	for i := range k.Holders {
		if !strings.Contains(k.Holders[i].Where, "train.py:12 loop") {
			t.Errorf("%+v: where?", k.Holders[i])
		}
		k.Holders[i].Where = ""
	}
	if !slices.Equal(k.Holders, want) {
		t.Errorf("%+v, want %+v", k.Holders, want)
	}
	r := build(7)
	if g := r.Breakdown.Peak.GrowsMB; g != 7 {
		t.Errorf("grows by %v MB per step, want 7", g)
	}
	if out := text(t, r); !strings.Contains(out, "Memory (GPU 0): 107 to 189 MB allocated") && !strings.Contains(out, "Memory (GPU 0): ") || !strings.Contains(out, "by 7.00 MB on average") {
		t.Errorf("%s", out)
	}
}

// Without a GPU the host's memory is the job's.
func TestMemoryOfACPUJob(t *testing.T) {
	s := newSynth()
	total := 10 * mb
	for n := range 2 {
		s.step(n, func() {
			s.hostOp("aten::linear", "[96,192],[192,192]", `"float","float"`, 100, 0, func() { s.memory(10, 30*mb, &total, 0) })
			s.memory(10, -30*mb, &total, 0)
		})
	}
	k := diagnose(t, s.json()).Breakdown.Peak
	if k == nil || k.Device != "host" || k.MB != 40 || k.BeforeMB != 10 || len(k.Holders) != 1 || k.Holders[0].What != "aten::linear" {
		t.Fatalf("%+v", k)
	}
}

// captured emits the capture of a graph of n blocks, two operators each: launches that start no
// work. The runtime names their kernels where named is set.
func (s *synth) captured(n int, named bool) {
	s.call("cudaStreamBeginCapture", 2)
	for i := range n {
		start := s.now
		for _, o := range []struct{ op, kernel string }{{"aten::linear", "nvjet_a"}, {"aten::gelu", "gelu_kernel"}} {
			s.op(o.op, "", 10, func() {
				s.correlation++
				args := fmt.Sprintf(`"correlation":%d`, s.correlation)
				if named {
					args += fmt.Sprintf(`,"kernel":%q`, o.kernel)
				}
				s.emit("cuda_runtime", "cudaLaunchKernel", s.now, 5, args)
				s.now += 5
			})
		}
		s.emit("python_function", fmt.Sprintf("nn.Module: Block_%d", i%2), start, s.now-start, "")
	}
	s.call("cudaStreamEndCapture", 2)
}

// replay launches a graph whose kernels share its number.
func (s *synth) replay(kernels ...string) {
	s.correlation++
	id := fmt.Sprintf(`"correlation":%d`, s.correlation)
	s.emit("cuda_runtime", "cudaGraphLaunch", s.now, 10, id)
	at := max(s.now+12, s.gpu)
	for _, k := range kernels {
		dur := 30.0
		if k == "gelu_kernel" {
			dur = 10
		}
		s.emit("kernel", k, at, dur, id+`,"stream":7,"blocks per SM":8`)
		at += dur
	}
	s.gpu, s.now = at, s.now+10
}

// The kernels of a replayed graph get their operators from its capture.
func TestGraphsAreJoined(t *testing.T) {
	blocks := func(n int) []string { return slices.Repeat([]string{"nvjet_a", "gelu_kernel"}, n) }
	replays := func(s *synth, kernels []string) *synth {
		for n := range 3 {
			s.step(n, func() { s.replay(kernels...); s.replay(kernels...) })
		}
		return s
	}
	captures := func(n int, named bool) []trace.Capture {
		s := newSynth()
		s.captured(n, named)
		s.dense(1, 10)
		tr, err := trace.Read(bytes.NewReader(s.json()))
		if err != nil {
			t.Fatal(err)
		}
		list, err := Captures("capture.json", tr)
		if err != nil || len(list) != 1 || len(list[0].Launches) != 2*n {
			t.Fatalf("%v, %+v", err, list)
		}
		return list
	}
	for _, c := range []struct {
		name     string
		captures []trace.Capture
		kernels  []string
		share    float64
		why      string
	}{
		{"by order", captures(6, false), blocks(6), 1, ""},
		{"by name", captures(6, true), blocks(6), 1, ""},
		{"by name, a launch was lost", captures(6, true), blocks(6)[1:], 1, ""},
		{"by order, another length", captures(6, false), blocks(5), 0, "none of the captures"},
		{"by order, other kernels", captures(6, false), append(blocks(3), "gelu_kernel", "nvjet_a", "gelu_kernel", "nvjet_a", "gelu_kernel", "nvjet_a"), 0, "none of the captures"},
		{"by name, other kernels", captures(6, true), slices.Repeat([]string{"mine"}, 12), 0, "none of the captures"},
		{"no capture", nil, blocks(6), 0, "--capture"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, err := trace.Read(bytes.NewReader(replays(newSynth(), c.kernels).json()))
			if err != nil {
				t.Fatal(err)
			}
			tr.Captures = c.captures
			r, err := report.Diagnose(tr)
			if err != nil || len(r.Breakdown.Graphs) != 1 {
				t.Fatalf("%v, %+v", err, r.Breakdown.Graphs)
			}
			g := r.Breakdown.Graphs[0]
			if g.Replays != 2 || g.Kernels != len(c.kernels) || !near(g.Joined+1, c.share+1) || !strings.Contains(g.Why, c.why) || (g.Why == "") != (c.why == "") {
				t.Fatalf("%+v", g)
			}
			if c.share == 0 {
				if !strings.Contains(text(t, r), "its operators are not known: ") {
					t.Error("the text does not say so")
				}
				return
			}
			first := g.Operators[0]
			if first.Name != "aten::linear" || !near(first.MS, 2*0.03*float64(slices.Index(c.kernels, "gelu_kernel")+5)) || g.Capture != "capture.json" {
				t.Errorf("%+v", g.Operators)
			}
			if len(g.Modules) != 2 || g.Modules[0].Name != "Block_0" && g.Modules[0].Name != "Block_1" {
				t.Errorf("%+v", g.Modules)
			}
			if out := text(t, r); !strings.Contains(out, "replayed 2 times per step") || !strings.Contains(out, "the capture in capture.json tells the operators of 100 %") {
				t.Errorf("%s", out)
			}
		})
	}
	s := newSynth()
	s.captured(6, false)
	if g := diagnose(t, replays(s, blocks(6)).json()).Breakdown.Graphs; len(g) != 1 || !near(g[0].Joined, 1) || g[0].Capture != "" {
		t.Errorf("in one recording: %+v", g)
	}
	tr, err := trace.Read(bytes.NewReader(replays(newSynth(), blocks(2)).json()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Captures("replay.json", tr); err == nil || !strings.Contains(err.Error(), "replay.json: no graph is captured") {
		t.Errorf("got %v", err)
	}
}

// The legs of the path are the middle step from its start to its end.
func TestThePathInOrder(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.gpu = s.now
		s.step(n, func() {
			loaderFor(4000)(s)
			s.dense(30, 100)
			for range 30 {
				s.op("autograd::engine::evaluate_function: MmBackward0", "", 15, func() { s.launch("nvjet_b", 150, 8) })
			}
			s.wait()
			start := s.now
			for range 10 {
				s.kernelOp("aten::add_", "", 60, 8)
			}
			s.emit("user_annotation", "Optimizer.step#SGD.step", start, s.now-start, "")
			s.now = s.gpu
		})
	}
	r := diagnose(t, s.json())
	legs := r.Breakdown.Order
	var parts []string
	var at, sum float64
	for _, l := range legs {
		parts = append(parts, l.Part)
		if math.Abs(l.AtMS-at) > 1e-6 {
			t.Errorf("%s begins at %v ms where the one before ends at %v", l.Part, l.AtMS, at)
		}
		at += l.MS
		sum += l.Share
	}
	if !slices.Equal(parts, []string{"wait", "forward", "backward", "optimizer"}) || math.Abs(sum-1) > 1e-9 {
		t.Fatalf("%v, %v of the step", parts, sum)
	}
	if legs[0].Waits != "the data loader" || legs[0].MS < 4 || legs[1].Pieces != 30 || !near(legs[2].MS, 4.5) || legs[2].Busy < 0.95 || legs[3].Pieces != 10 {
		t.Errorf("%+v", legs)
	}
	if out := text(t, r); !strings.Contains(out, "the GPU waits, the CPU in the data loader") || !strings.Contains(out, "backward: 30 pieces") {
		t.Errorf("%s", out)
	}
}

// Operators of no length, as clocks of whole microseconds make them, have no share of their leg.
func TestAPathOfWorkOfNoLength(t *testing.T) {
	s := newSynth()
	for n := range 2 {
		s.step(n, func() {
			s.hostOp("aten::linear", "[96,192],[192,192]", `"float","float"`, 500, 0, nil)
			for range 60 {
				s.emit("cpu_op", "autograd::engine::evaluate_function: AddBackward0", s.now, 0, "")
				s.now += 10
			}
		})
	}
	r := diagnose(t, s.json())
	legs := r.Breakdown.Order
	if len(legs) != 2 || legs[1].Part != "backward" || legs[1].Pieces != 60 || len(legs[1].Top) != 1 || legs[1].Top[0].Share != 0 || legs[1].Busy != 0 {
		t.Errorf("%+v", legs)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// A CPU job's path is its main thread's.
func TestThePathOfACPUJob(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() {
			first, last := s.layers(4, "float", 100)
			s.walk(first, last, nil)
			loaderFor(900)(s)
		})
	}
	r := diagnose(t, s.json())
	legs := r.Breakdown.Order
	var parts []string
	for _, l := range legs {
		parts = append(parts, l.Part)
	}
	if !slices.Equal(parts, []string{"forward", "backward", "wait"}) || legs[2].Waits != "the data loader" || legs[0].Pieces != 12 {
		t.Fatalf("%+v", legs)
	}
	if out := text(t, r); !strings.Contains(out, "the main thread in the data loader") || !strings.Contains(out, "forward: 12 operators") {
		t.Errorf("%s", out)
	}
}

// product is a matrix product of these dimensions that takes so long on the GPU.
func (s *synth) product(rows, columns, depth int, kind string, us float64) {
	s.hostOp("aten::linear", fmt.Sprintf("[%d,%d],[%d,%d]", rows, depth, columns, depth), fmt.Sprintf(`%q,%q`, kind, kind), 5, 0, func() {
		s.hostOp("aten::mm", fmt.Sprintf("[%d,%d],[%d,%d]", rows, depth, depth, columns), fmt.Sprintf(`%q,%q`, kind, kind), 5, 0, func() { s.launch("gemm", us, 8) })
	})
}

// A vocabulary that is no multiple of 8 makes its products slow; aligned ones are the measure.
func TestSlowProducts(t *testing.T) {
	const half = "c10::BFloat16"
	for _, c := range []struct {
		name    string
		columns int
		kind    string
		us      float64
		aligned bool
		want    bool
	}{
		{"unaligned and slow", 50257, half, 9000, true, true},
		{"unaligned and slow, by the data sheet", 50257, half, 9000, false, true},
		{"aligned", 50304, half, 9000, true, false},
		{"unaligned and fast", 50257, half, 2000, true, false},
		{"in full precision", 50257, "float", 9000, true, false},
		{"small", 257, half, 9000, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSynth()
			for n := range 3 {
				s.gpu = s.now
				s.step(n, func() {
					if c.aligned {
						for range 4 {
							s.product(8192, 4096, 4096, half, 400) // 687 TFLOP/s
						}
					}
					s.product(8192, c.columns, 2048, c.kind, c.us)
				})
			}
			r := diagnose(t, s.json())
			i := slices.IndexFunc(r.Findings, func(f rule.Finding) bool { return f.ID == "slow-product" })
			if (i >= 0) != c.want {
				t.Fatalf("%v", costsOf(r))
			}
			if i < 0 {
				return
			}
			// 1.686 TFLOP at 687 TFLOP/s, or at 0.6 of 990
			could := 2 * 8192 * 50257 * 2048.0 / 687.19e12 * 1e3
			if !c.aligned {
				could = 2 * 8192 * 50257 * 2048.0 / 594e12 * 1e3
			}
			if f := r.Findings[i]; math.Abs(f.SavesMS-(9-could)) > 0.05 || !strings.Contains(strings.Join(f.Evidence, "; "), "8192x2048, 2048x50257") {
				t.Errorf("saves %v ms, want %v; %v", f.SavesMS, 9-could, f.Evidence)
			}
		})
	}
}

// Kernels that only move tensors cost what they hold alone.
func TestCopiesOnAGPU(t *testing.T) {
	build := func(op, kernel string, us float64) *report.Report {
		s := newSynth()
		for n := range 3 {
			s.gpu = s.now
			s.step(n, func() {
				s.dense(10, 100)
				for range 10 {
					s.op(op, "", 10, func() { s.launch(kernel, us, 8) })
				}
			})
		}
		return diagnose(t, s.json())
	}
	find := func(r *report.Report) *rule.Finding {
		for i := range r.Findings {
			if r.Findings[i].ID == "copies" {
				return &r.Findings[i]
			}
		}
		return nil
	}
	if f := find(build("aten::contiguous", "elementwise_copy", 100)); f == nil || f.Severity != rule.Critical || !near(f.SavesMS, 1) {
		t.Errorf("%+v", f)
	}
	if f := find(build("aten::contiguous", "elementwise_copy", 25)); f == nil || f.Severity != rule.Note {
		t.Errorf("a fifth of the step: %+v, want a note", f)
	}
	if f := find(build("aten::contiguous", "elementwise_copy", 8)); f != nil {
		t.Errorf("%+v", f)
	}
	if f := find(build("aten::conv2d", "void cudnn::ops::nchwToNhwcKernel<float>", 100)); f == nil || !strings.Contains(f.Remedy, "channels_last") {
		t.Errorf("%+v", f)
	}
	if f := find(build("aten::conv2d", "implicit_gemm", 100)); f != nil {
		t.Errorf("%+v", f)
	}
}

// The waste of an overlapped kernel is no gain, since the critical path does not contain it.
func TestOverlappedKernelsGainNothing(t *testing.T) {
	build := func(overlaps bool) float64 {
		s := newSynth()
		for n := range 3 {
			s.gpu = s.now
			s.step(n, func() {
				s.op("aten::linear", "", 10, func() { s.launch("nvjet_a", 1000, 8) })
				s.op("aten::mm", "", 10, func() {
					if overlaps { // on a separate stream
						s.correlation++
						id := fmt.Sprintf(`"correlation":%d`, s.correlation)
						s.emit("cuda_runtime", "cudaLaunchKernel", s.now, 5, id)
						s.emit("kernel", "volta_dgemm_64x64", s.gpu-990, 980, id+`,"stream":9`)
						s.now += 5
						return
					}
					s.launch("volta_dgemm_64x64", 980, 8)
				})
			})
		}
		for _, f := range diagnose(t, s.json()).Findings {
			if f.ID == "fp64" {
				return f.SavesMS
			}
		}
		return 0
	}
	if got := build(false); !near(got, 0.49) {
		t.Errorf("alone: %v ms", got)
	}
	if got := build(true); got != 0 {
		t.Errorf("beside another kernel: %v ms", got)
	}
}

// Rates follow from shapes, and shares from the GPU's data sheet.
func TestRoofline(t *testing.T) {
	s := newSynth()
	for n := range 2 {
		s.gpu = s.now
		s.step(n, func() {
			s.hostOp("aten::linear", "[4096,4096],[4096,4096]", `"c10::BFloat16","c10::BFloat16"`, 5, 0, func() { s.launch("gemm", 277.6, 8) })
			s.hostOp("aten::add", "[64,1048576],[64,1048576]", `"float","float"`, 5, 0, func() { s.launch("add", 335.5, 8) })
			s.hostOp("aten::addmm", "[64],[128,32],[32,64]", `"float","float","float"`, 5, 0, func() { s.launch("small", 10, 8) })
		})
	}
	list := diagnose(t, s.json()).Breakdown.Roofline
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	add, linear, small := list[0], list[1], list[2]
	// 137.4 GFLOP in 277.6 µs is half of 990 TFLOP/s
	if linear.Name != "aten::linear" || math.Abs(linear.TFLOPS-495) > 1 || linear.Bound != "compute" || math.Abs(linear.Share-0.5) > 0.002 || linear.Shapes != "4096x4096, 4096x4096" || linear.Count != 1 {
		t.Errorf("%+v", linear)
	}
	// three times 268 MB in 335.5 µs is half of 4,800 GB/s
	if add.Name != "aten::add" || add.TFLOPS != 0 || math.Abs(add.GBps-2400) > 5 || add.Bound != "memory" || math.Abs(add.Share-0.5) > 0.002 {
		t.Errorf("%+v", add)
	}
	if want := 2 * 128 * 32 * 64 / 10e-6 / 1e12; math.Abs(small.TFLOPS-want) > 1e-3*want {
		t.Errorf("%v TFLOP/s, want %v", small.TFLOPS, want)
	}
}

// A module's time is the time of the operators inside it, including modules inside.
func TestModules(t *testing.T) {
	s := newSynth()
	for n := range 2 {
		s.step(n, func() {
			start := s.now
			s.dense(2, 100)
			inner := s.now
			s.dense(3, 100)
			s.emit("python_function", "nn.Module: Linear_0", inner, s.now-inner, "")
			s.emit("python_function", "nn.Module: Block_0", start, s.now-start, "")
			s.dense(1, 100)
		})
	}
	list := diagnose(t, s.json()).Breakdown.Modules
	find := func(name string) *analysis.ModuleTime {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
		return &analysis.ModuleTime{}
	}
	if b, l, own := find("Block_0"), find("Linear_0"), find("my training step"); !near(b.GPUMS, 0.5) || !near(l.GPUMS, 0.3) || !near(own.GPUMS, 0.6) || b.Count != 1 || b.CPUMS <= l.CPUMS {
		t.Errorf("%+v", list)
	}
}

// What the host does while JAX's profiler starts is not the program's.
func TestJAXWhileItsProfilerStarts(t *testing.T) {
	starting := `{"ph":"X","name":"$profiler.py:91 start_trace","pid":701,"tid":9,"ts":-9700000,"dur":9699000},
{"ph":"X","name":"tick","pid":701,"tid":9,"ts":-9000000,"dur":4000000},
{"ph":"X","name":"tick","pid":701,"tid":9,"ts":-5000000,"dur":4000000},
`
	data := strings.Replace(jaxEvents(), `{"ph":"X","name":"PjitFunction(step)"`, starting+`{"ph":"X","name":"PjitFunction(step)"`, 1)
	r, want := diagnose(t, []byte(data)), diagnose(t, []byte(jaxEvents()))
	if !near(r.StepMS, want.StepMS) || !slices.Equal(ids(r), ids(want)) || !near(r.GPUBusyShare, want.GPUBusyShare) {
		t.Errorf("a step of %v ms, busy %v, %v; without the start %v, %v, %v", r.StepMS, r.GPUBusyShare, ids(r), want.StepMS, want.GPUBusyShare, ids(want))
	}
}

// The first window of a GPU that runs behind begins where the work of the step before ends, even
// where a kernel of another stream starts earlier.
func TestTheFirstWindowHoldsNoOtherStepsWork(t *testing.T) {
	s := newSynth()
	issue := func(n int, us float64) {
		for range n {
			s.op("aten::linear", "", 15, func() { s.launch("nvjet_a", us, 8) })
		}
	}
	issue(20, 500) // the tail of a step before the recording's first mark
	tail := s.gpu
	for n := range 4 {
		start, at := s.now, s.hold()
		if n == 0 { // a kernel of another stream runs at the same time as the tail
			s.op("aten::add", "", 15, func() {
				s.correlation++
				id := fmt.Sprintf(`"correlation":%d`, s.correlation)
				s.emit("cuda_runtime", "cudaLaunchKernel", s.now, 5, id)
				s.emit("kernel", "side", s.now+10, 5, id+`,"stream":9`)
				s.now += 5
			})
		}
		issue(20, 500)
		s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	}
	r := diagnose(t, s.json())
	if tail < 9000 || !near(r.StepMS, 10) || r.GPUBusyShare < 0.99 {
		t.Errorf("a step of %v ms, busy %v; the period is 10 ms", r.StepMS, r.GPUBusyShare)
	}
}

// The work of convolutions and attention follows from their scalars too; what was not recorded is
// not guessed.
func TestRooflineOfConvolutions(t *testing.T) {
	op := func(name, dims, kinds, values string, us float64) analysis.OpRate {
		s := newSynth()
		for n := range 2 {
			s.gpu = s.now
			s.step(n, func() {
				args := fmt.Sprintf(`"Input Dims":[%s],"Input type":[%s]`, dims, kinds)
				if values != "" {
					args += fmt.Sprintf(`,"Concrete Inputs":[%s]`, values)
				}
				start, at := s.now, s.hold()
				s.launch("k", us, 8)
				s.now += 5
				s.events[at] = s.event("cpu_op", name, start, s.now-start, args)
			})
		}
		list := diagnose(t, s.json()).Breakdown.Roofline
		if len(list) != 1 {
			t.Fatalf("%s: %+v", name, list)
		}
		return list[0]
	}
	const half3 = `"c10::Half","c10::Half","c10::Half"`
	for _, c := range []struct {
		name, op, dims, kinds, values string
		flops, bytes                  float64
		bound                         string
	}{
		// 32 images, 64 channels, 56 by 56; a filter of 3 by 3 and a stride of 2 leave 28 by 28
		{"strides", "aten::conv2d", "[32,64,56,56],[128,64,3,3],[],[],[],[],[]", half3, `"","","","[2, 2]","[1, 1]","[1, 1]","1"`,
			2 * 32 * 128 * 28 * 28 * 64 * 9, 2 * (32*64*56*56 + 128*64*9 + 32*128*28*28), "memory"},
		{"dilation, no padding", "aten::convolution", "[1,256,64,64],[256,256,3,3],[],[],[],[],[],[],[]", half3, `"","","","[1, 1]","[0, 0]","[2, 2]","False","[0, 0]","1"`,
			2 * 256 * 60 * 60 * 256 * 9, 2 * (256*64*64 + 256*256*9 + 256*60*60), "compute"},
		{"groups", "aten::conv1d", "[8,64,1000],[64,1,5],[],[],[],[],[]", half3, `"","","","[1]","[2]","[1]","64"`,
			2 * 8 * 64 * 1000 * 5, 2 * (8*64*1000 + 64*5 + 8*64*1000), "memory"},
		{"transposed", "aten::convolution", "[8,128,14,14],[128,64,2,2],[],[],[],[],[],[],[]", half3, `"","","","[2, 2]","[0, 0]","[1, 1]","True","[0, 0]","1"`,
			2 * 8 * 128 * 14 * 14 * 64 * 4, 2 * (8*128*14*14 + 128*64*4), "compute"},
		{"no scalars", "aten::conv2d", "[32,64,56,56],[128,64,3,3],[],[],[],[],[]", half3, "", 0, 2 * (32*64*56*56 + 128*64*9), ""},
		{"padding by its name", "aten::conv2d", "[32,64,56,56],[128,64,3,3],[],[],[],[],[]", half3, `"","","","[1, 1]","same","[1, 1]","1"`, 0, 2 * (32*64*56*56 + 128*64*9), ""},
		{"backward", "aten::convolution_backward", "[32,128,28,28],[32,64,56,56],[128,64,3,3],[],[],[],[],[],[],[],[]", half3, `"","","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1","[True, True, False]"`,
			2 * 2 * 32 * 128 * 28 * 28 * 64 * 9, 2 * (32*128*28*28 + 2*32*64*56*56 + 2*128*64*9), "compute"},
		{"backward of a first layer", "aten::convolution_backward", "[32,128,28,28],[32,64,56,56],[128,64,3,3],[],[],[],[],[],[],[],[]", half3, `"","","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1","[False, True, True]"`,
			2 * 32 * 128 * 28 * 28 * 64 * 9, 2 * (32*128*28*28 + 2*32*64*56*56 + 2*128*64*9), "memory"},
		{"cuDNN's own backward", "aten::cudnn_convolution_backward", "[32,64,56,56],[32,128,28,28],[128,64,3,3]", half3, "",
			2 * 2 * 32 * 128 * 28 * 28 * 64 * 9, 2 * (32*128*28*28 + 2*32*64*56*56 + 2*128*64*9), "compute"},
		{"attention", "aten::scaled_dot_product_attention", "[8,12,1024,64],[8,12,1024,64],[8,12,1024,64]", half3, `"","","","","0.","False","",""`,
			2 * 2 * 8 * 12 * 1024 * 64 * 1024, 2 * 4 * 8 * 12 * 1024 * 64, "compute"},
		{"causal attention", "aten::scaled_dot_product_attention", "[8,12,1024,64],[8,12,1024,64],[8,12,1024,64]", half3, `"","","","","0.","True","",""`,
			2 * 8 * 12 * 1024 * 64 * 1024, 2 * 4 * 8 * 12 * 1024 * 64, "compute"},
		{"a sum", "aten::sum", "[4096,4096]", `"float"`, "", 0, 4 * 4096 * 4096, "memory"},
		{"a small product of much", "aten::bmm", "[96,3137,64],[96,64,3137]", `"c10::Half","c10::Half"`, "",
			2 * 96 * 3137 * 64 * 3137, 2 * 96 * (2*3137*64 + 3137*3137), "memory"},
		{"a list", "aten::cat", "[[64,1],[64,20]],[]", `"TensorList","Scalar"`, "", 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := op(c.op, c.dims, c.kinds, c.values, 500)
			if got, want := r.TFLOPS*500e6, c.flops; math.Abs(got-want) > 1e-6*want+1e-9 {
				t.Errorf("%.0f FLOPs, want %.0f", got, want)
			}
			if got, want := r.GBps*500e3, c.bytes; math.Abs(got-want) > 1e-6*want {
				t.Errorf("%.0f bytes, want %.0f", got, want)
			}
			share := 0.0
			if c.bound != "" {
				share = max(c.flops/990e12, c.bytes/4800e9) / 500e-6
				if strings.Contains(c.kinds, "float") {
					share = c.bytes / 4800e9 / 500e-6
				}
			}
			if r.Bound != c.bound || math.Abs(r.Share-share) > 1e-4*share {
				t.Errorf("%s bound at %v of the roof, want %s at %v", r.Bound, r.Share, c.bound, share)
			}
		})
	}
}

// Exposed communication is a segment of the path, and work that overlaps a collective counts in its
// own segment.
func TestThePathHoldsExposedCommunication(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.gpu = s.now
		s.step(n, func() {
			s.dense(10, 100)
			s.op("autograd::engine::evaluate_function: MmBackward0", "", 15, func() { s.launch("nvjet_b", 1000, 8) })
			s.exchange(s.gpu-500, 2500, 1<<20) // half a ms during the backward, two alone
			s.gpu += 2000
			start := s.now
			s.kernelOp("aten::_fused_adamw_", "", 500, 8)
			s.emit("user_annotation", "Optimizer.step#AdamW.step", start, s.now-start, "")
			s.now = s.gpu
		})
	}
	r := diagnose(t, s.json())
	var got []string
	for _, l := range r.Breakdown.Order {
		got = append(got, fmt.Sprintf("%s %.1f ms busy %.0f %%", l.Part, l.MS, 100*l.Busy))
	}
	if len(got) != 4 || got[1] != "backward 1.0 ms busy 100 %" || got[2] != "communication 2.0 ms busy 100 %" || !strings.HasPrefix(got[3], "optimizer 0.5 ms") {
		t.Errorf("%q", got)
	}
	if out := text(t, r); !strings.Contains(out, "communication, nothing beside it") {
		t.Errorf("%s", out)
	}
}

// The backward of a module's operators is the module's, by autograd's numbers.
func TestModulesHoldTheirBackward(t *testing.T) {
	s := newSynth()
	number := func(name string, sequence int, us float64) {
		start, at := s.now, s.hold()
		s.launch("k", us, 8)
		s.now += 5
		s.events[at] = s.event("cpu_op", name, start, s.now-start, fmt.Sprintf(`"Sequence number":%d`, sequence))
	}
	for n := range 2 {
		s.step(n, func() {
			base := 100 * (n + 1)
			for i := range 3 {
				start := s.now
				number("aten::linear", base+10*i, 100)
				s.emit("python_function", fmt.Sprintf("nn.Module: Linear_%d", i), start, s.now-start, "")
			}
			for i := 2; i >= 0; i-- { // the second node that the operator made
				number("autograd::engine::evaluate_function: AddmmBackward0", base+10*i+1, 50*float64(i+1))
			}
			s.wait()
		})
	}
	list := diagnose(t, s.json()).Breakdown.Modules
	i := slices.IndexFunc(list, func(m analysis.ModuleTime) bool { return m.Name == "Linear" })
	if i < 0 {
		t.Fatalf("%+v", list)
	}
	m := list[i]
	if m.Modules != 3 || m.Count != 3 || !near(m.BackwardMS, 0.3) || !near(m.GPUMS, 0.6) || m.Longest != "Linear_2" || !near(m.LongestMS, 0.25) {
		t.Errorf("%+v", m)
	}
}

// A backward is captured on autograd's thread, between the forward and the optimizer of the main
// one: the launches of all threads are one list in time order.
func TestACaptureOfSeveralThreads(t *testing.T) {
	s := newSynth()
	s.call("cudaStreamBeginCapture", 2)
	main := s.tid
	launch := func(op string, tid int) {
		s.tid = tid
		s.op(op, "", 10, func() { s.call("cudaLaunchKernel", 5) })
		s.tid = main
	}
	for range 3 {
		launch("aten::linear", main)
	}
	for range 3 {
		launch("autograd::engine::evaluate_function: AddmmBackward0", main+1)
	}
	launch("aten::_fused_adamw_", main)
	s.call("cudaStreamEndCapture", 2)
	for n := range 3 {
		s.step(n, func() { s.replay("nvjet_a", "nvjet_a", "nvjet_a", "nvjet_b", "nvjet_b", "nvjet_b", "adam") })
	}
	g := diagnose(t, s.json()).Breakdown.Graphs
	if len(g) != 1 || !near(g[0].Joined, 1) || len(g[0].Operators) != 3 {
		t.Fatalf("%+v", g)
	}
	for i, want := range []struct {
		name string
		ms   float64
	}{{"aten::linear", 0.09}, {"backward of AddmmBackward0", 0.09}, {"aten::_fused_adamw_", 0.03}} {
		if o := g[0].Operators[i]; o.Name != want.name || !near(o.MS, want.ms) {
			t.Errorf("%+v, want %+v", o, want)
		}
	}
}

package doctor

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ulikunitz/xz"

	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// hostOp is an operator of a CPU job with its inputs' shapes and types; body runs inside it.
func (s *synth) hostOp(name, dims, types string, dur float64, sequence int, body func()) {
	start, at := s.now, s.hold()
	if body != nil {
		body()
	}
	s.now = max(s.now, start+dur)
	args := fmt.Sprintf(`"Input Dims":[%s],"Input type":[%s]`, dims, types)
	if sequence > 0 {
		args += fmt.Sprintf(`,"Sequence number":%d`, sequence)
	}
	s.events[at] = s.event("cpu_op", name, start, s.now-start, args)
	s.now += 2
}

// layers is a network of n layers on the CPU; each operator makes a node.
func (s *synth) layers(n int, kind string, us float64) (first, last int) {
	first = s.sequence + 1
	for range n {
		for _, name := range []string{"aten::linear", "aten::gelu", "aten::layer_norm"} {
			s.sequence++
			s.hostOp(name, "[96,192],[192,192],[192]", strings.Repeat(`"`+kind+`",`, 2)+`"`+kind+`"`, us, s.sequence, nil)
		}
	}
	return first, s.sequence
}

// walk is a backward over the nodes of a forward, the last first.
func (s *synth) walk(first, last int, inside func()) {
	for n := last; n >= first; n-- {
		start, at := s.now, s.hold()
		if inside != nil {
			inside()
		}
		s.now = max(s.now, start+40)
		s.events[at] = s.event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", start, s.now-start, fmt.Sprintf(`"Sequence number":%d`, n))
		s.now += 2
	}
	s.sequence++ // what comes next makes its node behind these
	s.hostOp("aten::add", "[8]", `"float"`, 3, s.sequence, nil)
}

func TestCPUJobs(t *testing.T) {
	pages := readPages(t, "hosts.txt")
	train := func(s *synth) {
		first, last := s.layers(6, "float", 60)
		s.walk(first, last, nil)
	}
	for _, c := range []struct {
		name      string
		bad, good func(s *synth)
		want      string
		saves     float64 // ms
	}{
		{"nine forwards", func(s *synth) {
			for range 8 {
				s.layers(6, "float", 60)
			}
			train(s)
		}, train, "repeated-work", 8 * 18 * 0.060},
		{"anomaly mode", func(s *synth) {
			first, last := s.layers(6, "float", 60)
			s.walk(first, last, func() { s.hostOp("aten::isnan", "[96,192]", `"float"`, 30, 0, nil) })
		}, func(s *synth) {
			train(s)
			s.hostOp("aten::isnan", "[1]", `"float"`, 30, 0, nil) // of the loss
		}, "anomaly-mode", 18 * 0.060},
		{"no no_grad", func(s *synth) { s.layers(20, "float", 60) }, func(s *synth) {
			for range 20 {
				s.hostOp("aten::linear", "[96,192],[192,192],[192]", `"float","float","float"`, 60, 0, nil)
			}
		}, "dead-graph", 60 * 0.060 * 0.2},
		{"a loop over values", func(s *synth) {
			for range 300 {
				s.hostOp("aten::select", "[300],[],[]", `"float","Scalar","Scalar"`, 3, 0, nil)
				s.hostOp("aten::item", "[]", `"float"`, 2, 0, nil)
			}
			train(s)
		}, func(s *synth) {
			for range 200 {
				s.hostOp("aten::select", "[300],[],[]", `"float","Scalar","Scalar"`, 3, 0, nil)
				s.hostOp("aten::item", "[]", `"float"`, 2, 0, nil)
			}
			for range 5 {
				train(s)
			}
		}, "sync-storm", 300 * 0.009},
		{"copies", func(s *synth) {
			for range 10 {
				s.hostOp("aten::contiguous", "[64,128,96],[]", `"float",""`, 300, 0, nil)
			}
			train(s)
		}, func(s *synth) {
			s.hostOp("aten::contiguous", "[64,128,96],[]", `"float",""`, 300, 0, nil)
			train(s)
		}, "copies", 3},
		{"double precision", func(s *synth) {
			first, last := s.layers(6, "double", 60)
			s.walk(first, last, nil)
		}, train, "fp64", (18*0.060 + 18*0.040) / 2},
		{"too many threads", func(s *synth) {
			first, last := s.layers(6, "float", 130)
			s.walk(first, last, nil)
		}, func(s *synth) {
			first, last := s.layers(6, "float", 79)
			s.walk(first, last, nil)
		}, "oversubscribed", 12 * 0.100},
	} {
		t.Run(c.name, func(t *testing.T) {
			for good, body := range map[bool]func(s *synth){false: c.bad, true: c.good} {
				s := newSynth()
				s.sequence = 10
				for n := range 4 {
					start, at := s.now, s.hold()
					body(s)
					s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
				}
				r := diagnose(t, s.json())
				checkFindings(t, r)
				if !good {
					pages.hold(t, c.name, found(r))
				}
				switch {
				case good && len(r.Findings) > 0:
					t.Errorf("without it: %v", costsOf(r))
				case !good && (len(r.Findings) == 0 || r.Findings[0].ID != c.want || !near(r.Findings[0].SavesMS, c.saves)):
					t.Errorf("%v, want %s at %v ms", costsOf(r), c.want, c.saves)
				}
			}
		})
	}
}

// One core needs as long for many elements as threads without cores need for few.
func TestOneCoreIsNotOversubscribed(t *testing.T) {
	for _, c := range []struct {
		us   float64
		want bool
	}{{100, false}, {215, false}, {230, true}} {
		s := newSynth()
		for n := range 4 {
			start, at := s.now, s.hold()
			for range 6 {
				s.hostOp("aten::gelu", "[288,384]", `"float"`, c.us, 0, nil) // 110,592 elements
				s.hostOp("aten::layer_norm", "[288,384]", `"float"`, c.us, 0, nil)
			}
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		r := diagnose(t, s.json())
		if got := slices.Contains(ids(r), "oversubscribed"); got != c.want {
			t.Errorf("%v µs: %v", c.us, costsOf(r))
		}
	}
	// without operators of that size larger ones tell, with a fork's time on top of one core's
	for _, c := range []struct {
		rows int
		us   float64
		want bool
	}{{320, 407, false}, {320, 409, true}, {512, 2*262 + 85, true}, {513, 1000, false}} {
		s := newSynth()
		for n := range 4 {
			start, at := s.now, s.hold()
			for range 6 {
				dims := fmt.Sprintf("[%d,512]", c.rows)
				s.hostOp("aten::gelu", dims, `"float"`, c.us, 0, nil)
				s.hostOp("aten::layer_norm", dims, `"float"`, c.us, 0, nil)
			}
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		r := diagnose(t, s.json())
		if got := slices.Contains(ids(r), "oversubscribed"); got != c.want {
			t.Errorf("%d rows, %v µs: %v", c.rows, c.us, costsOf(r))
		}
	}
	// One kind of operator is no evidence, since it may be slow for another reason.
	s := newSynth()
	for n := range 4 {
		start, at := s.now, s.hold()
		for range 6 {
			s.hostOp("aten::gelu", "[96,192]", `"float"`, 300, 0, nil)
		}
		s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	}
	if r := diagnose(t, s.json()); slices.Contains(ids(r), "oversubscribed") {
		t.Errorf("one kind: %v", costsOf(r))
	}
}

// Operators of the forward may be long for another reason, such as anomaly mode's tracebacks. They
// do not lack cores if a backward operator, divided alike, is quick.
func TestAQuickBackwardIsNotOversubscribed(t *testing.T) {
	for _, c := range []struct {
		name string
		rows int
		us   float64
		runs int
		want bool
	}{
		{"aten::gelu_backward", 128, 79, 99, false}, {"aten::gelu_backward", 128, 81, 99, true},
		{"aten::gelu_backward", 65, 30, 99, false}, {"aten::gelu_backward", 64, 30, 99, true}, // on one thread up to 16,384 elements
		{"aten::native_layer_norm_backward", 128, 30, 99, false}, {"aten::mm", 128, 30, 99, true},
		{"aten::tanh_backward", 156, 30, 99, true}, {"aten::tanh_backward", 157, 30, 99, false},
		{"aten::gelu_backward", 128, 30, 3, true}, {"aten::gelu_backward", 128, 30, 4, false}, // four runs tell
	} {
		s := newSynth()
		for n := range 4 {
			start, at := s.now, s.hold()
			first, last := s.layers(6, "float", 130)
			s.walk(first, last, func() {
				if c.runs > 0 {
					c.runs--
					s.hostOp(c.name, fmt.Sprintf("[%d,256]", c.rows), `"float"`, c.us, 0, nil)
				}
			})
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		r := diagnose(t, s.json())
		if got := slices.Contains(ids(r), "oversubscribed"); got != c.want {
			t.Errorf("%s of %d rows, %v µs: %v", c.name, c.rows, c.us, costsOf(r))
		}
	}
}

// Threads that compete for cores take about as long each time. If other processes use the cores, a
// run takes a random number of their time slices.
func TestABusyMachineIsNotOversubscribed(t *testing.T) {
	for _, c := range []struct {
		best, times float64 // µs, and the quarter point as a multiple of it
		want        rule.Severity
	}{{200, 1.5, rule.Critical}, {200, 3, rule.Critical}, {200, 3.1, rule.Note}, {200, 25, rule.Note}, {999, 1.5, rule.Critical}, {1001, 1.5, rule.Note}} {
		s := newSynth()
		for n := range 4 {
			start, at := s.now, s.hold()
			for _, times := range []float64{1, c.times, 2 * c.times, 2 * c.times} {
				s.hostOp("aten::gelu", "[96,192]", `"float"`, c.best*times, 0, nil)
				s.hostOp("aten::layer_norm", "[96,192]", `"float"`, c.best*times, 0, nil)
			}
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		r := diagnose(t, s.json())
		if len(r.Findings) != 1 || r.Findings[0].ID != "oversubscribed" || r.Findings[0].Severity != c.want {
			t.Errorf("%v µs, %v times: %v", c.best, c.times, costsOf(r))
		}
		if c.times == 25 {
			readPages(t, "busy_machine.txt").hold(t, "25 times", found(r))
		}
	}
}

// A loop over single values is reported from 5 % of the step on. The layer between two iterations
// of the loop does not belong to it, for any number of operators.
func TestReadsOnTheCPU(t *testing.T) {
	for _, c := range []struct {
		ms   float64 // in addition to the loop, which takes 2.7
		want bool
	}{{49.2, true}, {53.5, false}} {
		s := newSynth()
		for n := range 4 {
			start, at := s.now, s.hold()
			for range 300 {
				s.hostOp("aten::select", "[300],[],[]", `"float","Scalar","Scalar"`, 3, 0, nil)
				s.hostOp("aten::item", "[]", `"float"`, 2, 0, nil)
			}
			s.hostOp("aten::linear", "[96,192],[192,192],[192]", `"float","float","float"`, 1000*c.ms, 0, nil)
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		r := diagnose(t, s.json())
		if slices.Contains(ids(r), "sync-storm") != c.want || c.want && !near(r.Findings[0].SavesMS, 300*0.009) {
			t.Errorf("%v ms: %v", c.ms, costsOf(r))
		}
	}
}

// A pipeline's step visits nodes from before the recording, so the use of the step's nodes is
// unknown.
func TestAPipelineHasNoDeadGraph(t *testing.T) {
	s := newSynth()
	s.sequence = 1000
	for n := range 1 {
		start, at := s.now, s.hold()
		_, last := s.layers(8, "float", 60)
		s.walk(100, 160, nil)
		s.walk(last, last, nil) // and the last that it made
		s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	}
	if r := diagnose(t, s.json()); slices.Contains(ids(r), "dead-graph") || slices.Contains(ids(r), "repeated-work") {
		t.Errorf("%v", costsOf(r))
	}
}

// Chains of elementwise kernels on a busy GPU are found, and are a note until they are most of it.
func TestUnfusedChains(t *testing.T) {
	for _, c := range []struct {
		kernels int
		want    rule.Severity // empty for none
	}{{2, ""}, {3, rule.Note}, {24, rule.Critical}} {
		s := newSynth()
		for n := range 3 {
			s.step(n, func() {
				for range 20 {
					s.launch("nvjet_sm90_tst_256x128_64x4", 100, 8)
					for range c.kernels {
						s.launch("void at::native::vectorized_elementwise_kernel<4>", 20, 8)
					}
				}
			})
		}
		r := diagnose(t, s.json())
		i := slices.Index(ids(r), "unfused")
		if (i >= 0) != (c.want != "") || i >= 0 && r.Findings[i].Severity != c.want {
			t.Errorf("%d kernels: %v, want %q", c.kernels, costsOf(r), c.want)
		}
	}
}

// Without ProfilerStep the optimizer's steps are the steps, and a cold one at the start goes.
func TestIterationsWithoutMarks(t *testing.T) {
	build := func(first float64, marks int) *report.Report {
		s := newSynth()
		for n := range marks {
			if n == 1 {
				s.call("cudaLaunchKernel", first)
			}
			s.dense(40, 100)
			s.now = max(s.now, s.gpu)
			s.op("Optimizer.step#AdamW.step", "", 20, nil)
		}
		return diagnose(t, s.json())
	}
	if r := build(4, 3); r.Steps != 1 {
		t.Errorf("three marks make %d steps, want the whole recording", r.Steps)
	}
	if r := build(4, 4); r.Steps != 3 || !near(r.StepMS, 4) {
		t.Errorf("four marks make %d steps of %v ms, want 3 of 4", r.Steps, r.StepMS)
	}
	r := build(30_000, 30)
	if r.Steps != 28 || !near(r.StepMS, 4) || len(r.Recorded) > 0 || !strings.Contains(strings.Join(r.Remarks, "\n"), "mark of Optimizer.step") {
		t.Errorf("%d steps of %v ms, recorded %v, %v", r.Steps, r.StepMS, r.Recorded, r.Remarks)
	}
}

// A truncated file is read to its end, from a hundred events on.
func TestCutFilesAreRead(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() { s.dense(40, 100) })
	}
	data := s.json()
	for name, cut := range map[string][]byte{"json": data[:2*len(data)/3], "gzip": pack(t, data)[:len(pack(t, data))*2/3]} {
		tr, err := trace.Read(bytes.NewReader(cut))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r, err := report.Diagnose(tr)
		if err != nil || !strings.Contains(strings.Join(r.Remarks, "\n"), "the file is cut off after") || r.Steps == 0 {
			t.Errorf("%s: %v, %v", name, err, r.Remarks)
		}
		if !slices.Equal(r.Recorded, []string{"cut-off"}) || !strings.HasPrefix(r.Verdict(), "No verdict") {
			t.Errorf("%s: %v, %s", name, r.Recorded, r.Verdict())
		}
	}
	behind := bytes.LastIndexByte(data, ']')
	for n, want := range map[int]int{behind: 1, behind + 1: 0, len(data): 0} {
		tr, err := trace.Read(bytes.NewReader(data[:n]))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := report.Diagnose(tr); err != nil || len(r.Recorded) != want {
			t.Errorf("cut at %d of %d: %v, %v", n, len(data), r.Recorded, err)
		}
	}
	at := 0
	for range 99 {
		at += bytes.Index(data[at:], []byte("}},")) + 3
	}
	for n, want := range map[int]bool{at: false, at + bytes.Index(data[at:], []byte("}},")) + 3: true} {
		if _, err := trace.Read(bytes.NewReader(data[:n])); (err == nil) != want {
			t.Errorf("cut at %d: %v, read %v", n, err, want)
		}
	}
	var packed bytes.Buffer
	z, err := xz.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if one, err := trace.ReadFile(writeTemp(t, "a.json.xz", packed.Bytes())); err != nil || one.Events == 0 {
		t.Errorf("xz: %v", err)
	}
	// Truncated compressed data is read to its end, with a remark.
	if _, err := trace.ReadFile(writeTemp(t, "a.json.xz", packed.Bytes()[:40])); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("cut xz: %v", err)
	}
	cut := io.MultiReader(bytes.NewReader(data[:2*len(data)/3]), iotest.ErrReader(io.ErrUnexpectedEOF))
	if one, err := trace.Read(cut); err != nil || !strings.Contains(strings.Join(one.Remarks(), "\n"), "the file is cut off after") {
		t.Errorf("a stream that ends too early: %v", err)
	}
	cut = io.MultiReader(bytes.NewReader(data[:500]), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := trace.Read(cut); err == nil || !strings.HasPrefix(err.Error(), "the file is cut off after") {
		t.Errorf("a stream that ends at once: %v", err)
	}
}

// rocprofv3's JSON becomes the same records as a Chrome trace.
func TestRocprof(t *testing.T) {
	var hip, kernels, copies []string
	now := 1_000_000
	for i := range 200 {
		hip = append(hip, fmt.Sprintf(`{"kind":0,"operation":1,"thread_id":5,"correlation_id":{"internal":%d,"external":0},"start_timestamp":%d,"end_timestamp":%d}`, i+1, now, now+5000))
		kernels = append(kernels, fmt.Sprintf(`{"kind":1,"operation":0,"thread_id":5,"correlation_id":{"internal":%d,"external":0},"start_timestamp":%d,"end_timestamp":%d,`+
			`"dispatch_info":{"agent_id":{"handle":77},"queue_id":{"handle":3},"kernel_id":9,"grid_size":{"x":256,"y":1,"z":1},"workgroup_size":{"x":64,"y":1,"z":1}}}`, i+1, now+6000, now+8000))
		now += 20_000
	}
	copies = append(copies, fmt.Sprintf(`{"kind":2,"operation":0,"thread_id":5,"correlation_id":{"internal":900},"start_timestamp":%d,"end_timestamp":%d,"bytes":4096,"dst_agent_id":{"handle":77},"src_agent_id":{"handle":1}}`, now, now+4000))
	data := fmt.Sprintf(`{"rocprofiler-sdk-tool":[{"metadata":{"pid":1},"agents":[{"id":{"handle":1},"type":1,"product_name":"EPYC"},{"id":{"handle":77},"type":2,"product_name":"AMD Instinct MI300X","cu_count":304}],`+
		`"kernel_symbols":[{"kernel_id":9,"kernel_name":"_Zk","formatted_kernel_name":"my_kernel(float*)"}],`+
		`"strings":{"buffer_records":[{"kind":"HIP_RUNTIME_API","operations":["none","hipLaunchKernel"]},{"kind":"KERNEL_DISPATCH","operations":["x"]},{"kind":"MEMORY_COPY","operations":["x"]}]},`+
		`"buffer_records":{"kernel_dispatch":[%s],"hip_api":[%s],"memory_copy":[%s]}}]}`, strings.Join(kernels, ","), strings.Join(hip, ","), strings.Join(copies, ","))
	r := diagnose(t, []byte(data))
	if r.GPU != "AMD Instinct MI300X" || r.PerStep.Kernels != 200 || r.PerStep.Copies != 1 || r.PerStep.CopiedBytes != 4096 || r.PerStep.Launches != 200 || !near(r.PerStep.KernelMS, 0.4) {
		t.Errorf("%q %+v", r.GPU, r.PerStep)
	}
	if len(r.Findings) == 0 || len(r.Findings) != 1 || r.Findings[0].ID != "small-batch" {
		t.Errorf("%v", costsOf(r))
	}
	for _, bad := range []string{`{"rocprofiler-sdk-tool":[]}`, `{"rocprofiler-sdk-tool":[{"agents":5}]}`, data[:len(data)/2]} {
		if _, err := trace.Read(strings.NewReader(bad)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
}

// A part of a recording is judged alone: between two moments, or where an annotation stands.
func TestAPartOfARecording(t *testing.T) {
	s := newSynth()
	s.step(1, func() { s.dense(40, 100) })
	for range 3 {
		start := s.now
		for range 50 {
			s.kernelOp("aten::sum", "", 4, 4)
			s.item()
		}
		s.emit("user_annotation", "reads", start, s.now-start, "")
	}
	data := s.json()
	read := func(only func(tr *trace.Trace) error) (*report.Report, error) {
		tr, err := trace.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := only(tr); err != nil {
			return nil, err
		}
		return report.Diagnose(tr)
	}
	r, err := read(func(tr *trace.Trace) error { return tr.OnlyRange("reads") })
	if err != nil || r.Steps != 3 || len(r.Findings) == 0 || r.Findings[0].ID != "sync-storm" {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := read(func(tr *trace.Trace) error { return tr.OnlyRange("writes") }); err == nil || !strings.Contains(err.Error(), "there are my training step, reads") {
		t.Errorf("%v", err)
	}
	r, err = read(func(tr *trace.Trace) error { return tr.Only(1_000_000, 3_000_000) })
	if err != nil || r.Steps != 1 || !near(r.StepMS, 2) {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := read(func(tr *trace.Trace) error { return tr.Only(1e12, 0) }); err == nil {
		t.Error("a part behind the end is judged")
	}
}

// What a recording lacks withholds what depends on it, and no more.
func TestWithheld(t *testing.T) {
	for _, c := range []struct {
		recorded []string
		id       string
		want     bool
	}{
		{nil, "launch-bound", false}, {[]string{"cut-out"}, "launch-bound", true}, {[]string{"cut-out"}, "straggler", false}, {[]string{"graph-unrecorded"}, "comm-exposed", false},
		{[]string{"graph-unrecorded"}, "python-bound", true}, {[]string{"sampled"}, "comm-exposed", true}, {[]string{"sampled"}, "anomaly-mode", false}, {[]string{"cut-out", "cold-start"}, "straggler", true},
		{[]string{"toy"}, "fp64", true},
	} {
		if got := rule.Withheld(c.recorded, c.id); got != c.want {
			t.Errorf("%v: %s withheld %v, want %v", c.recorded, c.id, got, c.want)
		}
	}
}

// Kernels that a graph's launch left unrecorded, and a sample of a run, have separate keywords.
func TestMissingEventsHaveWords(t *testing.T) {
	s := newSynth()
	for n := range 4 {
		s.step(n, func() {
			s.dense(20, 100)
			s.correlation++
			s.emit("cuda_runtime", "cudaGraphLaunch", s.now, 8, fmt.Sprintf(`"correlation":%d`, s.correlation))
			at := max(s.gpu, s.now+8)
			tid := s.tid
			s.tid = 700
			for k := range 6 { // every other part of the graph is missing
				s.emit("kernel", "void mine", at+float64(k)*3000, 100, fmt.Sprintf(`"correlation":%d`, s.correlation))
			}
			s.tid = tid
			s.gpu, s.now = at+18_000, at+18_000
		})
	}
	if r := diagnose(t, s.json()); !slices.Equal(r.Recorded, []string{"graph-unrecorded"}) {
		t.Errorf("recorded %v, idle %+v", r.Recorded, r.Idle)
	}
	s = newSynth()
	for n := range 3 {
		s.step(n, func() { s.dense(400, 30) })
	}
	kept := s.events[:0]
	work := 0
	for _, e := range s.events {
		if strings.Contains(e, `"cat":"kernel"`) {
			if work++; work%25 != 0 {
				continue
			}
		}
		kept = append(kept, e)
	}
	s.events = kept
	if r := diagnose(t, s.json()); !slices.Equal(r.Recorded, []string{"sampled"}) {
		t.Errorf("recorded %v", r.Recorded)
	}
}

// Collectives that overlap are counted once, and those of other makers are communication.
func TestOverlappingCollectives(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() {
			s.dense(20, 100)
			tid := s.tid
			for k := range 3 {
				s.tid = 701 + k
				s.emit("kernel", "void dpsk::ep::internode::dispatch<8>(int)", s.gpu, 2000, fmt.Sprintf(`"stream":%d`, 10+k))
			}
			s.tid = tid
			s.gpu += 2000
		})
	}
	r := diagnose(t, s.json())
	if c := r.Breakdown.Collectives; len(c) != 1 || c[0].Kind != "all_to_all" || !near(c[0].MS, 2) || !near(c[0].ExposedMS, 2) || c[0].Count != 3 {
		t.Errorf("%+v", c)
	}
	if f := r.Findings[0]; f.ID != "comm-exposed" || !near(f.SavesMS, 2) {
		t.Errorf("%v", costsOf(r))
	}
}

// Collectives are listed with the longest first, those of one length by kind.
func TestCollectivesAreListedByTime(t *testing.T) {
	s := newSynth()
	for n := range 3 {
		s.step(n, func() {
			s.dense(20, 100)
			tid := s.tid
			for k, of := range []struct {
				name string
				us   float64
			}{{"SendRecv", 300}, {"AllGather", 700}, {"Broadcast", 300}, {"AllReduce", 900}} {
				s.tid = 701 + k
				s.emit("kernel", "ncclDevKernel_"+of.name+"_RING_LL(ncclDevKernelArgsStorage<4096ul>)", s.gpu, of.us, fmt.Sprintf(`"stream":%d`, 10+k))
				s.gpu += of.us
			}
			s.tid = tid
		})
	}
	var got []string
	for _, c := range diagnose(t, s.json()).Breakdown.Collectives {
		got = append(got, fmt.Sprintf("%s %.0f", c.Kind, 1000*c.MS))
	}
	if want := []string{"all_reduce 900", "all_gather 700", "broadcast 300", "send_recv 300"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A thread that loses its core pauses anywhere; the program pauses at the same place in every step.
// What the framework does inside its own loops is neither.
func TestPausesOfTheMachine(t *testing.T) {
	for _, c := range []struct {
		name  string
		pause func(step, layer int) float64 // µs before a layer
		want  bool
	}{
		{"nowhere", func(int, int) float64 { return 0 }, false},
		{"in every step at the same place", func(_, layer int) float64 { return float64(b2i(layer == 3)) * 1500 }, true},
		{"in every step somewhere", func(step, layer int) float64 { return float64(b2i(layer == 2*step+1)) * 1500 }, false},
		{"at one place in most steps", func(step, layer int) float64 { return float64(b2i(layer == 3 && step != 1)) * 1500 }, true},
		{"at one place in half of the steps", func(step, layer int) float64 { return float64(b2i(layer == 3 && step%2 == 0)) * 1500 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSynth()
			for n := range 4 {
				start, at := s.now, s.hold()
				for layer := range 12 {
					s.now += c.pause(n, layer)
					s.hostOp(fmt.Sprintf("mine::layer%d", layer), "[96,192]", `"float"`, 300, 0, nil)
				}
				s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
			}
			r := diagnose(t, s.json())
			checkFindings(t, r)
			if got := slices.Contains(ids(r), "python-bound"); got != c.want {
				t.Errorf("%v", costsOf(r))
			}
		})
	}
	for _, c := range []struct {
		name string
		want bool
	}{{"Optimizer.step#SGD.step", false}, {"Optimizer.zero_grad#SGD.zero_grad", false}, {"my own range", true}} {
		s := newSynth()
		for n := range 4 {
			start, at := s.now, s.hold()
			for range 12 {
				s.hostOp("aten::linear", "[96,192]", `"float"`, 300, 0, nil)
			}
			s.emit("user_annotation", c.name, s.now, 1500, "")
			s.now += 1500
			s.hostOp("aten::add_", "[192]", `"float"`, 10, 0, nil)
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		if r := diagnose(t, s.json()); slices.Contains(ids(r), "python-bound") != c.want {
			t.Errorf("inside %s: %v", c.name, costsOf(r))
		}
	}
}

// Where steps differ, a place that few of them pass counts with all that it takes there.
func TestPausesOfUnlikeSteps(t *testing.T) {
	s := newSynth()
	for n := range 4 {
		start, at := s.now, s.hold()
		for range 12 {
			s.hostOp("aten::linear", "[96,192]", `"float"`, 300, 0, nil)
		}
		s.now += 1500
		s.hostOp(fmt.Sprintf("mine::kind%d", n), "[96,192]", `"float"`, 300, 0, nil)
		s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	}
	r := diagnose(t, s.json())
	if !slices.Equal(ids(r), []string{"python-bound"}) || !near(r.Findings[0].SavesMS, 1.5) {
		t.Errorf("%v", costsOf(r))
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hostRank is one of two gloo ranks on the CPU. In each step it computes for 10 ms and is late, in
// a pause or in an operator, and both leave the exchange when the later one has come. Unequal work
// shows in the operator's shape.
func hostRank(rank int, own, both []float64, lateIn string) []byte {
	const extra = 100
	s := newSynth()
	for n := range own {
		start, at := s.now, s.hold()
		begin := s.now
		for i := range 10 {
			dur, dims := 998.0, "[96,192]"
			switch {
			case i == 4 && lateIn == "operators and a pause":
				dur += max(0, own[n]-1000)
			case i == 4 && lateIn != "a pause":
				dur += own[n]
			}
			if i == 4 && lateIn == "more rows" {
				dims = fmt.Sprintf("[%d,192]", 96+int(own[n])/10)
			}
			s.hostOp("aten::linear", dims, `"float"`, dur, 0, nil)
		}
		s.now = begin + 10_000 + own[n]
		end := begin + 10_000 + both[n] + extra
		s.tid = 7
		s.emit("user_annotation", "gloo:all_reduce", s.now, end-s.now, `"Collective name":"all_reduce"`)
		s.tid = 1
		s.now = end
		s.hostOp("aten::add_", "[192]", `"float"`, 50, 0, nil)
		s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	}
	info := fmt.Sprintf(`{"distributedInfo":{"backend":"gloo","rank":%d,"world_size":2},"schemaVersion"`, rank)
	return []byte(strings.Replace(string(s.json()), `{"schemaVersion"`, info, 1))
}

// One step that the machine delayed is no imbalance, and an exchange that one step waits for is not
// exposed. Waits in every step are, for any late rank.
func TestRanksOnTheCPU(t *testing.T) {
	p := readPages(t, "host_ranks.txt")
	none, even, odd := make([]float64, 8), []float64{4000, 0, 4000, 0, 4000, 0, 4000, 0}, []float64{0, 4000, 0, 4000, 0, 4000, 0, 4000}
	for name, c := range map[string]struct {
		late   [2][]float64 // µs, by rank and step
		lateIn string
		want   []string // above a note
	}{
		"quiet":                  {[2][]float64{none, none}, "a pause", nil},
		"one step":               {[2][]float64{{0, 0, 0, 12_000, 0, 0, 0, 0}, none}, "a pause", nil},
		"now one, now the other": {[2][]float64{even, odd}, "a pause", []string{"imbalance"}},
		"unequal work":           {[2][]float64{even, odd}, "more rows", []string{"imbalance"}},
		"a busy machine":         {[2][]float64{even, odd}, "the same operators", nil},
		"always one":             {[2][]float64{none, {4000, 4100, 3900, 4000, 4000, 4100, 3900, 4000}}, "a pause", []string{"straggler"}},
		"always one, unsteadily": {[2][]float64{none, {500, 9000, 2000, 7000, 4000, 8000, 1000, 6000}}, "the same operators", nil},
		"mostly the machine":     {[2][]float64{none, {1500, 9900, 3000, 8000, 5000, 9000, 2000, 7000}}, "operators and a pause", nil},
		"a slow core":            {[2][]float64{none, {4000, 4100, 3900, 4000, 4000, 4100, 3900, 4000}}, "the same operators", []string{"straggler"}},
	} {
		both := make([]float64, 8)
		for i := range both {
			both[i] = max(c.late[0][i], c.late[1][i])
		}
		var list []*report.Report
		for rank := range 2 {
			list = append(list, diagnose(t, hostRank(rank, c.late[rank], both, c.lateIn)))
		}
		j := report.JoinRanks(list)
		var got []string
		for _, f := range j.Findings {
			if f.Severity != rule.Note {
				got = append(got, f.ID)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		var b strings.Builder
		if err := j.WriteText(&b, report.Text{Breakdown: true}); err != nil {
			t.Fatal(err)
		}
		p.hold(t, name, b.String())
	}
}

// One interval in the only step does not recur: unless it is most of the step it is a note with
// advice on what to record. The cost of an interval is at most its length.
func TestOneIntervalInOneStep(t *testing.T) {
	for _, c := range []struct {
		name     string
		pauses   []float64 // µs before each of 12 layers, in the only step; none elsewhere
		severity rule.Severity
	}{
		{"a third", []float64{0, 0, 1800}, rule.Note},
		{"half", []float64{0, 0, 3700}, rule.Critical},
		{"a third in two places", []float64{0, 900, 0, 900}, rule.Critical},
	} {
		s := newSynth()
		for layer := range 12 {
			if layer < len(c.pauses) {
				s.now += c.pauses[layer]
			}
			s.hostOp(fmt.Sprintf("mine::layer%d", layer), "[96,192]", `"float"`, 300, 0, nil)
		}
		r := diagnose(t, s.json())
		checkFindings(t, r)
		if !slices.Equal(ids(r), []string{"python-bound"}) || r.Findings[0].Severity != c.severity {
			t.Errorf("%s: %v %v", c.name, costsOf(r), r.Findings)
			continue
		}
		if noted := strings.Contains(strings.Join(r.Findings[0].Evidence, "; "), "record several steps"); noted != (c.severity == rule.Note) {
			t.Errorf("%s: %v", c.name, r.Findings[0].Evidence)
		}
	}
	s := newSynth()
	for n := range 3 { // the middle step's pause in all steps would be more than all pauses
		start, at := s.now, s.hold()
		for layer := range 12 {
			s.now += float64(b2i(layer == 3 && n > 0)) * 1500
			s.hostOp(fmt.Sprintf("mine::layer%d", layer), "[96,192]", `"float"`, 300, 0, nil)
		}
		s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	}
	if r := diagnose(t, s.json()); !slices.Equal(ids(r), []string{"python-bound"}) || !near(r.Findings[0].SavesMS, 1) {
		t.Errorf("%v", costsOf(r))
	}
}

// Where no stacks were recorded the narrowest annotation around a finding is named, unless it holds
// most of the steps too.
func TestFindingInsideAnAnnotation(t *testing.T) {
	for _, c := range []struct {
		name  string
		notes func(s *synth, start, pause float64)
		want  string
	}{
		{"none", func(*synth, float64, float64) {}, ""},
		{"two around it", func(s *synth, _, pause float64) {
			s.emit("user_annotation", "outer", s.now-300, pause+600, "")
			s.emit("user_annotation", "my\naugment", s.now, pause, "")
		}, `inside the annotation "my\naugment"`},
		{"half of it", func(s *synth, _, pause float64) { s.emit("user_annotation", "mine", s.now, pause/2+2, "") }, `inside the annotation "mine"`},
		{"less than half of it", func(s *synth, _, pause float64) { s.emit("user_annotation", "mine", s.now, pause/2-10, "") }, ""},
		{"the whole step", func(s *synth, start, pause float64) {
			s.emit("user_annotation", "all", start, s.now-start+pause+1500, "")
		}, ""},
	} {
		s := newSynth()
		for n := range 3 {
			start, at := s.now, s.hold()
			for layer := range 12 {
				if layer == 6 {
					c.notes(s, start, 1500)
					s.now += 1500
				}
				s.hostOp(fmt.Sprintf("mine::layer%d", layer), "[96,192]", `"float"`, 300, 0, nil)
			}
			s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
		}
		r := diagnose(t, s.json())
		if !slices.Equal(ids(r), []string{"python-bound"}) {
			t.Errorf("%s: %v", c.name, costsOf(r))
			continue
		}
		if got := r.Findings[0].Evidence[len(r.Findings[0].Evidence)-1]; c.want != "" && got != c.want || c.want == "" && strings.HasPrefix(got, "inside") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

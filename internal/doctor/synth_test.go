package doctor

import (
	"bytes"
	"fmt"
	"strings"
)

// synth writes a trace as PyTorch would: operators and calls on CPU threads, work on one GPU stream
// that starts when it was issued and the stream is free. Times are microseconds.
type synth struct {
	events      []string
	now, gpu    float64
	correlation int
	sequence    int
	tid         int
	base        float64
	shapes      bool
}

func newSynth() *synth { return &synth{base: 1e12, tid: 1, shapes: true} }

func (s *synth) emit(cat, name string, start, dur float64, args string) {
	s.events = append(s.events, s.event(cat, name, start, dur, args))
}

func (s *synth) event(cat, name string, start, dur float64, args string) string {
	return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":7,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{%s}}`,
		cat, name, s.tid, s.base+start, dur, args)
}

// hold keeps a place before the events to come: what contains others is written first.
func (s *synth) hold() int {
	s.events = append(s.events, "")
	return len(s.events) - 1
}

// op runs body inside an operator that takes dur in addition to body.
func (s *synth) op(name, inputs string, dur float64, body func()) {
	start, at, n := s.now, s.hold(), s.sequence
	s.now += dur / 2
	if body != nil {
		body()
	}
	s.now += dur / 2
	args := fmt.Sprintf(`"Sequence number":%d`, n)
	if s.shapes {
		args += fmt.Sprintf(`,"Input Dims":[%s],"Concrete Inputs":[%q]`, "[8]", inputs)
	}
	s.events[at] = s.event("cpu_op", name, start, s.now-start, args)
	s.now++
}

func (s *synth) issue(call, cat, name string, cost, dur float64, args string) {
	s.correlation++
	id := fmt.Sprintf(`"correlation":%d`, s.correlation)
	s.emit("cuda_runtime", call, s.now, cost, id)
	start := max(s.now+cost, s.gpu)
	s.gpu = start + dur
	tid := s.tid
	s.tid = 700
	s.emit(cat, name, start, dur, id+","+args)
	s.tid = tid
	s.now += cost
}

func (s *synth) launch(kernel string, dur, blocks float64) {
	s.issue("cudaLaunchKernel", "kernel", kernel, 5, dur, fmt.Sprintf(`"blocks per SM":%g`, blocks))
}

func (s *synth) copy(route string, bytes int, dur float64) {
	s.issue("cudaMemcpyAsync", "gpu_memcpy", "Memcpy "+route, 6, dur, fmt.Sprintf(`"bytes":%d`, bytes))
}

func (s *synth) wait() {
	end := max(s.now+2, s.gpu+1)
	s.emit("cuda_runtime", "cudaStreamSynchronize", s.now, end-s.now, `"correlation":0`)
	s.now = end
}

func (s *synth) call(name string, dur float64) {
	s.emit("cuda_runtime", name, s.now, dur, "")
	s.now += dur
}

// kernelOp is an ordinary operator with one kernel.
func (s *synth) kernelOp(name, inputs string, dur, blocks float64) {
	s.op(name, inputs, 15, func() { s.launch("void mine<"+name+">", dur, blocks) })
}

func (s *synth) item() {
	s.op("aten::item", "", 8, func() { s.copy("DtoH (Device -> Pinned)", 4, 1); s.wait() })
}

// step runs one profiler step and lets the GPU finish in it.
func (s *synth) step(n int, body func()) {
	start, at := s.now, s.hold()
	body()
	s.now = max(s.now, s.gpu) + 5
	s.events[at] = s.event("user_annotation", fmt.Sprintf("ProfilerStep#%d", n), start, s.now-start, "")
	s.emit("user_annotation", "my training step", start, s.now-start, "")
	s.emit("python_function", "train.py(12): loop", start, s.now-start, "")
	s.now += 10
}

// dense is the normal part of a step: products that fill the GPU.
func (s *synth) dense(n int, us float64) {
	for range n {
		s.op("aten::linear", "", 15, func() { s.launch("nvjet_sm90_tst_256x128_64x4", us, 8) })
	}
}

func (s *synth) json() []byte {
	var b bytes.Buffer
	b.WriteString(`{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H200","computeMajor":9,"computeMinor":0,"numSms":132}],"traceEvents":[` + "\n")
	b.WriteString(strings.Join(s.events, ",\n"))
	b.WriteString("\n],\"traceName\":\"t.json\"}\n")
	return b.Bytes()
}

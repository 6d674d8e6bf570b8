package doctor

import (
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// Each case is three steps of a small program with one fault besides normal work, and the expected
// findings. The first word of first is the finding that must come first.
func TestRules(t *testing.T) {
	pages := readPages(t, "rules.txt")
	for _, c := range []struct {
		name   string
		first  string // "" for no finding above a note
		absent []string
		body   func(s *synth)
	}{
		{name: "dense work", body: func(s *synth) { s.dense(40, 200) }},
		{name: "dense work with a read of the loss", body: func(s *synth) { s.dense(40, 200); s.item() }},
		{name: "launches hidden behind a busy GPU", body: func(s *synth) {
			s.dense(40, 2000)
			for range 800 {
				s.kernelOp("aten::add", "", 3, 4)
			}
		}},
		{name: "fp32 products", first: "fp32-matmul", body: func(s *synth) {
			for range 30 {
				s.op("aten::linear", "", 15, func() { s.launch("ampere_sgemm_128x64_tn", 300, 8) })
			}
		}},
		{name: "tf32 products", body: func(s *synth) {
			for range 30 {
				s.op("aten::linear", "", 15, func() { s.launch("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128", 300, 8) })
			}
		}},
		{name: "a kernel an edge", first: "launch-bound", body: func(s *synth) {
			s.dense(10, 50)
			for range 1500 {
				s.op("aten::select", "", 4, nil)
				s.kernelOp("aten::add", "", 1.5, 0.01)
			}
		}},
		{name: "a value a sample", first: "sync-storm", body: func(s *synth) {
			s.dense(10, 50)
			for range 100 {
				s.kernelOp("aten::sum", "", 2, 0.01)
				s.item()
			}
		}},
		{name: "a value a sample while the GPU is busy", body: func(s *synth) {
			for range 40 {
				s.dense(10, 200)
				s.item()
			}
		}},
		{name: "synchronize in a loop", first: "sync-storm", body: func(s *synth) {
			for range 100 {
				s.dense(1, 10)
				s.call("cudaDeviceSynchronize", 20)
			}
		}},
		{name: "a matrix a sample", first: "transfer-storm", body: func(s *synth) {
			s.dense(10, 50)
			for range 128 {
				s.op("aten::to", "", 15, func() { s.copy("HtoD (Pageable -> Device)", 484, 1); s.wait() })
				s.op("aten::to", "", 15, func() { s.copy("DtoH (Device -> Pageable)", 484, 1); s.wait() })
			}
		}},
		{name: "a batch in a few tensors", body: func(s *synth) {
			for range 6 {
				s.op("aten::to", "", 15, func() { s.copy("HtoD (Pageable -> Device)", 50_000, 8); s.wait() })
			}
			s.dense(40, 200)
		}},
		{name: "large pageable copies", first: "pageable-copy", body: func(s *synth) {
			for range 2 {
				s.op("aten::to", "", 200, func() { s.copy("HtoD (Pageable -> Device)", 64<<20, 6000); s.wait() })
			}
			s.dense(40, 200)
		}},
		{name: "large page-locked copies before the kernels", first: "copy-exposed", absent: []string{"pageable-copy"}, body: func(s *synth) {
			for range 2 {
				s.op("aten::to", "", 10, func() { s.copy("HtoD (Pinned -> Device)", 64<<20, 1200) })
			}
			s.dense(40, 200)
		}},
		{name: "large page-locked copies beside the kernels", body: func(s *synth) {
			s.dense(10, 200)
			for range 2 {
				s.op("aten::to", "", 10, func() { free := s.gpu; s.copy("HtoD (Pinned -> Device)", 64<<20, 1200); s.gpu = free })
			}
			s.dense(40, 200)
		}},
		{name: "a slow loader", first: "loader-starved", body: func(s *synth) {
			s.emit("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", s.now, 9000, "")
			s.now += 9000
			s.dense(40, 200)
		}},
		{name: "a loader ahead of the loop", body: func(s *synth) {
			s.dense(40, 200)
			s.emit("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", s.now, 3000, "")
			s.now += 3000
		}},
		{name: "a tensor a token", first: "tensor-in-loop", absent: []string{"transfer-storm", "sync-storm"}, body: func(s *synth) {
			s.dense(10, 50)
			for range 400 {
				s.op("aten::to", "", 20, func() { s.copy("HtoD (Pageable -> Device)", 8, 1); s.wait() })
				s.op("aten::lift_fresh", "", 1, nil)
				s.sequence++
				s.kernelOp("aten::embedding", "", 2, 0.1)
				s.sequence++
				s.kernelOp("aten::add", "", 2, 0.1)
			}
			s.backward(800)
		}},
		{name: "a tensor filled for every token", first: "tensor-in-loop", body: func(s *synth) {
			s.dense(10, 50)
			for range 200 {
				s.kernelOp("aten::zeros", "", 1, 0.01)
				s.kernelOp("aten::add", "", 2, 0.1)
			}
		}},
		{name: "driver allocations", first: "alloc-thrash", body: func(s *synth) {
			for range 8 {
				s.op("aten::empty", "", 5, func() { s.call("cudaMalloc", 400) })
				s.dense(5, 60)
				s.call("cudaFree", 300)
			}
		}},
		{name: "the same work nine times", first: "repeated-work", body: func(s *synth) {
			s.dense(20, 50)
			for range 9 {
				s.vectorisedCost()
			}
		}},
		{name: "a loop of many kernels nine times", first: "repeated-work", body: func(s *synth) {
			for range 9 {
				for b := range 40 {
					s.op("aten::select", string(rune('A'+b)), 3, nil)
					s.vectorisedCost()
				}
			}
		}},
		{name: "different samples in a loop", absent: []string{"repeated-work"}, body: func(s *synth) {
			for b := range 60 {
				s.op("aten::select", string(rune('A'+b)), 3, nil)
				s.vectorisedCost()
			}
			s.dense(40, 600)
		}},
		{name: "equal layers of plain products", first: "launch-bound", absent: []string{"repeated-work"}, body: func(s *synth) {
			for range 24 {
				for _, name := range []string{"aten::matmul", "aten::add", "aten::mul", "aten::relu"} {
					s.kernelOp(name, "", 4, 8)
				}
			}
		}},
		{name: "equal layers", absent: []string{"repeated-work"}, body: func(s *synth) {
			for range 12 {
				for range 4 {
					s.kernelOp("aten::linear", "", 3, 0.2)
					s.kernelOp("aten::mul", "", 3, 0.2)
				}
			}
		}},
		{name: "decode steps", absent: []string{"repeated-work"}, body: func(s *synth) {
			for range 20 {
				for range 6 {
					s.kernelOp("aten::mul", "", 3, 0.2)
				}
				s.kernelOp("aten::multinomial", "", 3, 0.2)
			}
		}},
		{name: "an optimizer a parameter at a time", absent: []string{"repeated-work"}, body: func(s *synth) {
			for range 40 {
				for _, name := range []string{"aten::mul_", "aten::addcmul_", "aten::sqrt", "aten::div", "aten::addcdiv_"} {
					s.kernelOp(name, "", 3, 0.2)
				}
			}
		}},
		{name: "padding around a tiny problem", first: "padding-overhead", body: func(s *synth) {
			s.dense(10, 5)
			s.op("aten::pad_sequence", "", 400, func() {
				for range 20 {
					s.launch("void at::native::copy", 1, 0.01)
				}
			})
			for i, name := range []string{"aten::arange", "aten::lt", "aten::stack", "aten::gather", "aten::where", "aten::masked_fill"} {
				s.kernelOp(name, string(rune('a'+i)), 2, 0.1)
				s.now += 20
			}
		}},
		{name: "rows written into a padded block", first: "padding-overhead", body: func(s *synth) {
			s.dense(10, 5)
			for i := range 100 {
				s.op("aten::slice", string(rune('a'+i)), 4, nil)
				s.op("aten::copy_", "", 10, func() { s.copy("DtoD (Device -> Device)", 88, 1) })
			}
			s.kernelOp("aten::masked_fill", "", 2, 0.1)
		}},
		{name: "a batch of four", first: "small-batch", body: func(s *synth) {
			for i := range 200 {
				s.kernelOp("aten::linear", string(rune('a'+i)), 4, 0.05)
			}
		}},
		{name: "a graph replayed", body: func(s *synth) {
			s.call("cudaGraphLaunch", 10)
			for range 900 {
				s.tid = 700
				s.emit("kernel", "void mine<fused>", s.gpu+10, 3, "")
				s.tid = 1
				s.gpu += 3.4
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSynth()
			for n := range 3 {
				s.gpu = s.now
				s.step(n, func() { c.body(s) })
			}
			r := diagnose(t, s.json())
			checkFindings(t, r)
			pages.hold(t, c.name, found(r))
			got := ids(r)
			switch {
			case c.first != "" && (len(got) == 0 || got[0] != c.first):
				t.Errorf("findings %v, want %s first; %+v", got, c.first, r.PerStep)
			case c.first == "" && c.absent == nil && len(r.Findings) > 0 && r.Findings[0].Severity != rule.Note:
				t.Errorf("findings %v (%v), want none above a note", got, r.Findings[0].Evidence)
			}
			for _, id := range c.absent {
				if slices.Contains(got, id) {
					t.Errorf("findings %v, want no %s", got, id)
				}
			}
		})
	}
}

// backward runs autograd's half of the last n numbered operators on its own thread.
func (s *synth) backward(n int) {
	s.tid = 2
	last := s.sequence
	for k := range n {
		s.sequence = last - k
		s.kernelOp(trace.BackwardPrefix+": AddBackward0", "", 2, 0.1)
	}
	s.tid, s.sequence = 1, last+1
}

// vectorisedCost is a route cost as tensor operations on the whole batch.
func (s *synth) vectorisedCost() {
	for _, name := range []string{"aten::stack", "aten::index", "aten::ne", "aten::mul", "aten::sum"} {
		s.kernelOp(name, "", 4, 0.5)
	}
}

// Unmarked steps count as one, and a trace without GPU work still has a report.
func TestWithoutStepsAndWithoutGPU(t *testing.T) {
	s := newSynth()
	s.emit("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", s.now, 5000, "")
	s.now += 5000
	for range 10 {
		s.op("aten::addmm", "", 100, nil)
	}
	r := diagnose(t, s.json())
	if r.Steps != 1 || r.GPUBusyShare != 0 {
		t.Errorf("%d steps, busy %v", r.Steps, r.GPUBusyShare)
	}
	if got := ids(r); len(got) != 1 || got[0] != "loader-starved" {
		t.Errorf("findings %v, want the loader", got)
	}
	var b strings.Builder
	if err := r.WriteText(&b, report.Text{}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"holds no GPU work", "1.00 ms  aten::addmm, 10 per step", "no GPU events in the trace"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is not in\n%s", part, b.String())
		}
	}
}

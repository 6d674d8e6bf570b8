package doctor

import (
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
)

// Every threshold is swept across: the finding must be there on one side and absent on the other.
// The limits are written out here, so that one moved in a rule turns this red.
func TestThresholds(t *testing.T) {
	steps := func(body func(s *synth, n int)) *report.Report {
		s := newSynth()
		for n := range 4 {
			s.gpu = max(s.gpu, s.now)
			s.step(n, func() { body(s, n) })
		}
		return diagnose(t, s.json())
	}
	settle := func(s *synth) { s.now = max(s.now, s.gpu) }
	share := func(r *report.Report, kinds ...string) float64 {
		var ms float64
		for _, k := range kinds {
			ms += idleOf(r, k)
		}
		return ms / r.StepMS
	}
	for _, c := range []struct {
		id    string
		limit float64
		slack float64 // how near the limit the measure is exact, as a share of it
		from  int
		to    int
		by    int
		run   func(k int) (r *report.Report, measure float64)
	}{
		{"launch-bound", 0.10, 0.02, 20, 100, 4, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				s.dense(100, 100)
				settle(s)
				for range k {
					s.kernelOp("aten::add", "", 5, 4)
				}
			})
			return r, share(r, "operator", "launch")
		}},
		{"loader-starved", 0.05, 0.01, 100, 900, 50, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				s.emit("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", s.now, float64(k), "")
				s.now += float64(k)
				s.dense(100, 100)
			})
			return r, share(r, "loader")
		}},
		{"python-bound", 0.05, 0.01, 200, 900, 50, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				s.dense(100, 100)
				settle(s)
				s.now += float64(k)
				s.kernelOp("aten::add", "", 5, 4)
			})
			return r, share(r, "python")
		}},
		{"long-wait", 0.05, 0.01, 200, 900, 50, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				s.dense(100, 100)
				settle(s)
				s.op("aten::sum", "", 4, func() { s.call("cudaStreamSynchronize", float64(k)) })
				s.kernelOp("aten::add", "", 5, 4)
			})
			return r, share(r, "wait")
		}},
		{"comm-exposed", 0.05, 0.01, 200, 900, 50, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				s.dense(100, 100)
				s.exchange(s.gpu, float64(k), 1<<20)
				s.gpu += float64(k)
			})
			return r, r.Breakdown.CommExposedShare
		}},
		{"sync-storm", 32, 0, 28, 36, 1, func(k int) (*report.Report, float64) {
			return steps(func(s *synth, _ int) {
				s.dense(10, 50)
				for range k {
					s.kernelOp("aten::sum", "", 2, 0.01)
					s.item()
				}
			}), float64(k)
		}},
		{"transfer-storm", 64, 0, 60, 68, 1, func(k int) (*report.Report, float64) {
			return steps(func(s *synth, _ int) {
				s.dense(10, 50)
				for range k {
					s.op("aten::to", "", 15, func() { s.copy("HtoD (Pageable -> Device)", 484, 1); s.wait() })
				}
			}), float64(k)
		}},
		{"tensor-in-loop", 64, 0, 60, 68, 1, func(k int) (*report.Report, float64) {
			return steps(func(s *synth, _ int) {
				s.dense(10, 50)
				for range k {
					s.kernelOp("aten::zeros", "", 1, 0.01)
					s.kernelOp("aten::add", "", 2, 0.1)
				}
			}), float64(k)
		}},
		{"alloc-thrash", 4, 0, 2, 7, 1, func(k int) (*report.Report, float64) {
			return steps(func(s *synth, _ int) {
				s.dense(20, 50)
				settle(s)
				for range k {
					s.op("aten::empty", "", 5, func() { s.call("cudaMalloc", 300) })
				}
				s.dense(1, 50)
			}), float64(k)
		}},
		{"pageable-copy", 0.02, 0.02, 50, 500, 25, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				s.op("aten::to", "", 1, func() { s.copy("HtoD (Pageable -> Device)", 2<<20, float64(k)); s.wait() })
				s.dense(100, 100)
			})
			i := slices.Index(ids(r), "pageable-copy")
			if i >= 0 {
				return r, r.Findings[i].Share
			}
			return r, (float64(k) + 15) / 1000 / r.StepMS
		}},
		{"copy-exposed", 0.05, 0.01, 200, 900, 50, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				s.op("aten::to", "", 1, func() { s.copy("HtoD (Pinned -> Device)", 2<<20, float64(k)) })
				s.dense(100, 100)
			})
			return r, r.Breakdown.CopyShare
		}},
		{"fp32-matmul", 0.10, 0.01, 2, 20, 1, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				s.dense(100, 100)
				for range k {
					s.op("aten::linear", "", 15, func() { s.launch("ampere_sgemm_128x64_tn", 100, 8) })
				}
			})
			return r, float64(k) * 0.1 / r.StepMS
		}},
		{"small-batch", 0.10, 0.02, 20, 100, 4, func(k int) (*report.Report, float64) {
			r := steps(func(s *synth, _ int) {
				for range k {
					s.kernelOp("aten::add", "", 5, 0.05)
				}
				s.emit("user_annotation", "enumerate(DataLoader)#_X.__next__", s.now, 9000, "")
				s.now += 9000
			})
			return r, share(r, "operator", "launch")
		}},
	} {
		t.Run(c.id, func(t *testing.T) {
			above, below := 0, 0
			for k := c.from; k <= c.to; k += c.by {
				r, measure := c.run(k)
				if math.Abs(measure-c.limit) < c.slack*c.limit {
					continue
				}
				want := measure >= c.limit
				if want {
					above++
				} else {
					below++
				}
				if got := slices.Contains(ids(r), c.id); got != want {
					t.Errorf("%d: measure %.4g, limit %.4g, findings %v", k, measure, c.limit, costsOf(r))
				}
			}
			if above == 0 || below == 0 {
				t.Errorf("%d above the limit, %d below: the sweep does not cross it", above, below)
			}
		})
	}
}

// A severity is a share of the step: 3 % is a warning, 30 % critical.
func TestSeverities(t *testing.T) {
	for share, want := range map[float64]rule.Severity{0.0299: rule.Note, 0.03: rule.Warning, 0.299: rule.Warning, 0.30: rule.Critical, 1: rule.Critical} {
		if got := rule.SeverityOf(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}

// Kernels of a small step that fill nothing are a small batch; past 256 of them their number is the
// cause.
func TestSmallBatchOrManyKernels(t *testing.T) {
	for k, want := range map[int]string{250: "small-batch", 262: "launch-bound"} {
		s := newSynth()
		for n := range 3 {
			s.step(n, func() {
				for range k {
					s.kernelOp("aten::linear", "", 4, 0.05)
				}
			})
		}
		if r := diagnose(t, s.json()); ids(r)[0] != want {
			t.Errorf("%d kernels: %v, want %s", k, costsOf(r), want)
		}
	}
}

// The advice on precision depends on the GPU, or on the kernels' names if the trace does not name
// it.
func TestPrecisionAdvice(t *testing.T) {
	for _, c := range []struct {
		gpu      string
		kernel   string
		severity rule.Severity
		words    string
	}{
		{`"name":"NVIDIA H200","computeMajor":9,"computeMinor":0`, "ampere_sgemm_128x64_tn", rule.Critical, "set_float32_matmul_precision"},
		{`"name":"NVIDIA A100","computeMajor":8,"computeMinor":0`, "volta_sgemm_128x64_tn", rule.Critical, "set_float32_matmul_precision"},
		{`"name":"Tesla V100-SXM2-32GB","computeMajor":7,"computeMinor":0`, "volta_sgemm_128x64_tn", rule.Note, "torch.float16"},
		{`"name":"Tesla V100-SXM2-32GB","computeMajor":7,"computeMinor":0`, "volta_scudnn_128x64_relu_medium_nn_v1", rule.Note, "torch.float16"},
		{`"name":"Tesla V100-SXM2-32GB","computeMajor":7,"computeMinor":0`, "void cudnn::cnn::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", rule.Note, "torch.float16"},
		{"", "volta_sgemm_128x64_tn", rule.Note, "torch.float16"},
		{"", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64_ffma_aligna4", rule.Critical, "set_float32_matmul_precision"},
		{`"name":"Tesla P100","computeMajor":6,"computeMinor":0`, "maxwell_sgemm_128x64_tn", "", ""},
		{`"name":"NVIDIA H200","computeMajor":9,"computeMinor":0`, "void cudnn::dgrad_engine<__half, 512>", "", ""},
		{`"name":"Tesla V100-SXM2-32GB","computeMajor":7,"computeMinor":0`, "volta_fp16_sgemm_fp16_128x32_nn", "", ""},
	} {
		t.Run(c.gpu+c.kernel, func(t *testing.T) {
			s := newSynth()
			for n := range 3 {
				s.step(n, func() {
					for range 30 {
						s.op("aten::linear", "", 15, func() { s.launch(c.kernel, 300, 8) })
					}
				})
			}
			data := s.json()
			device := []byte(`{"id":0,"name":"NVIDIA H200","computeMajor":9,"computeMinor":0,"numSms":132}`)
			other := []byte("{" + c.gpu + "}")
			if c.gpu == "" {
				other = nil
			}
			r := diagnose(t, replaceOnce(data, device, other))
			if c.severity == "" {
				if len(r.Findings) > 0 {
					t.Errorf("findings %v", costsOf(r))
				}
				return
			}
			if len(r.Findings) == 0 || r.Findings[0].ID != "fp32-matmul" || r.Findings[0].Severity != c.severity || !contains(r.Findings[0].Remedy, c.words) {
				t.Errorf("findings %v %+v", costsOf(r), r.Findings)
			}
		})
	}
}

func replaceOnce(data, old, with []byte) []byte {
	text := string(data)
	i := strings.Index(text, string(old))
	return []byte(text[:i] + string(with) + text[i+len(old):])
}

// What was recorded has limits too.
func TestRecordedThresholds(t *testing.T) {
	sweep := func(word string, limit float64, from, to, by int, run func(k int) (*report.Report, float64)) {
		t.Run(word, func(t *testing.T) {
			above, below := 0, 0
			for k := from; k <= to; k += by {
				r, measure := run(k)
				if math.Abs(measure-limit) < 0.02*limit {
					continue
				}
				want := measure >= limit
				if want {
					above++
				} else {
					below++
				}
				if got := slices.Contains(r.Recorded, word); got != want {
					t.Errorf("%d: measure %.4g, limit %.4g, recorded %v, idle %v", k, measure, limit, r.Recorded, r.Idle)
				}
			}
			if above == 0 || below == 0 {
				t.Errorf("%d above the limit, %d below: the sweep does not cross it", above, below)
			}
		})
	}
	sweep("cold-start", 0.20, 1000, 4000, 200, func(k int) (*report.Report, float64) {
		s := newSynth()
		s.dense(10, 50)
		s.now = max(s.now, s.gpu)
		s.op("aten::linear", "", 15, func() { s.call("cuModuleLoadData", float64(k)); s.launch("k", 5, 4) })
		for range 400 {
			s.kernelOp("aten::add", "", 5, 4)
		}
		r := diagnose(t, s.json())
		idle := r.StepMS * (1 - r.GPUBusyShare)
		if idleOf(r, "cold-start") < 0.1*r.StepMS { // the other limit
			return r, 0
		}
		return r, idleOf(r, "cold-start") / idle
	})
	sweep("graph-capture", 0.10, 200, 3000, 200, func(k int) (*report.Report, float64) {
		s := newSynth()
		s.dense(100, 100)
		s.call("cudaStreamBeginCapture", 3)
		s.now += float64(k)
		s.call("cudaStreamEndCapture", 3)
		s.now = max(s.now, s.gpu)
		s.dense(40, 100)
		r := diagnose(t, s.json())
		return r, (float64(k) + 6) / 1000 / r.StepMS
	})
}

// Padding must hold a tenth of the step.
func TestPaddingThreshold(t *testing.T) {
	for k, want := range map[int]bool{4: false, 40: true} {
		s := newSynth()
		for n := range 3 {
			s.step(n, func() {
				for range 200 {
					s.kernelOp("aten::add", "", 2, 4)
				}
				s.kernelOp("aten::pad", "", 2, 0.1)
				for range k {
					s.kernelOp("aten::masked_fill", "", 2, 0.1)
				}
			})
		}
		if r := diagnose(t, s.json()); slices.Contains(ids(r), "padding-overhead") != want {
			t.Errorf("%d masks: %v", k, costsOf(r))
		}
	}
}

// A GPU that trails by a fifth of the step keeps the CPU's steps; by two fifths it has its own.
func TestAheadThreshold(t *testing.T) {
	for behind, want := range map[float64]bool{0.2: false, 0.45: true} {
		s := newSynth()
		const step = 2000.0
		s.gpu = behind * step // work from before
		for n := range 5 {
			start, at := s.now, s.hold()
			for range 20 {
				s.op("aten::linear", "", 15, func() { s.launch("nvjet_a", step/20, 8) })
			}
			s.now = start + step
			s.events[at] = s.event("user_annotation", "ProfilerStep#"+string(rune('0'+n)), start, s.now-start, "")
		}
		r := diagnose(t, s.json())
		if ahead(r) != want {
			t.Errorf("behind by %v of a step: the GPU's own steps %v, want %v", behind, ahead(r), want)
		}
	}
}

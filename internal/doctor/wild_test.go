package doctor

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// The traces of other projects are read where HAUL_TRACES points and never copied. What is known
// about each was computed by others, from unions of intervals.
//
//	HAUL_TRACES=traces scripts/doctor-truth

// wildTruth holds the facts about one trace. Shares and times are checked if they are given.
type wildTruth struct {
	file     string
	recorded []string // exactly these
	first    []string // the first finding is one of these; empty: none above a note
	step     float64  // ms
	busy     float64
	exposed  float64            // share of the step
	idle     map[string]float64 // ms per step, by kind; "path" is operators and launches
	costs    map[string]float64 // ms per step
	where    string
}

var wildTruths = []wildTruth{
	{file: "kineto/resnet50_profiler_api_nw0", first: []string{"loader-starved"}, busy: 0.70, idle: map[string]float64{"loader": 31.4, "path": 13}, costs: map[string]float64{"loader-starved": 31.4}},
	{file: "kineto/resnet50_profiler_api_nw4", busy: 0.87, idle: map[string]float64{"path": 11}},
	{file: "kineto/resnet50_v2_nw0_a", first: []string{"loader-starved"}, busy: 0.56, idle: map[string]float64{"loader": 59.3, "path": 16}, costs: map[string]float64{"loader-starved": 59.3}},
	{file: "kineto/resnet50_v2_nw4_b", first: []string{"launch-bound"}, busy: 0.71, idle: map[string]float64{"path": 17, "python": 13, "copy": 8}, costs: map[string]float64{"launch-bound": 17, "python-bound": 13}},
	{file: "kineto/resnet50_autograd_api_nw0", recorded: []string{"cold-start"}, busy: 0.18},
	{file: "param/linear_kineto", recorded: []string{"cold-start"}, busy: 0.19},
	{file: "tracelens/mi300_resnet_act_checkpoint", first: []string{"comm-exposed"}, step: 19.0, exposed: 0.62, costs: map[string]float64{"comm-exposed": 11.8}},
	{file: "tracelens/h100_facebook_timesformer-base-finetuned-k400__1016002", first: []string{"python-bound"}, busy: 0.41, costs: map[string]float64{"python-bound": 218}, where: "image_processing_videomae.py:235"},
	{file: "tracelens/h100_gaunernst_bert-small-uncased__1016001", first: []string{"launch-bound", "small-batch"}, busy: 0.07},
	{file: "tracelens/b200_eager_trace", first: []string{"launch-bound"}, busy: 0.13},
	{file: "tracelens/inference_sglang_decode_sglang_Qwen3-8B_decode", recorded: []string{"cut-out"}},
	{file: "tracelens/inference_vllm_decode_full_graph_execution", recorded: []string{"cut-out"}, busy: 0.56},
	{file: "tracelens/inference_xdit_flux.1_capture_traces_capture_trace_rank_0", recorded: []string{"graph-capture"}, busy: 0.15},
	{file: "tracelens/h100_Qwen_Qwen1.5-0.5B-Chat__1016005", busy: 0.92},
	{file: "tracelens/perf_model_normalization_normalization_layer_test", recorded: []string{"cold-start"}},
	{file: "tracelens/torch_compile_triton_trace", busy: 0.97},
	{file: "hta/nccl_parser_config_nccl_data", first: []string{"launch-bound"}, busy: 0.24, exposed: 0.06, idle: map[string]float64{"path": 142}, costs: map[string]float64{"launch-bound": 142}},
	{file: "hta/ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace", step: 95.6, busy: 0.97},
	{file: "hta/trace_diff_control_control", first: []string{"comm-exposed"}, busy: 0.84, exposed: 0.19},
	{file: "hta/trace_diff_test_test", first: []string{"comm-exposed"}, busy: 0.96, exposed: 0.09},
	{file: "hta/cpu_only_big", first: []string{"comm-exposed"}, costs: map[string]float64{"comm-exposed": 217}},
	{file: "hta/critical_path_alexnet_benchmark_result_2869224_1695835535_trace", recorded: []string{"cold-start"}},
	{file: "hta/amd_trace_mi250_minitoy_train_ROCm6_2_kineto", recorded: []string{"cold-start", "toy"}, idle: map[string]float64{"cold-start": 3.3}},
}

func wild(t testing.TB, parts ...string) string {
	t.Helper()
	dir := os.Getenv("HAUL_TRACES")
	if dir == "" {
		t.Skip("HAUL_TRACES does not say where the traces of other projects are")
	}
	return filepath.Join(append([]string{dir, "wild"}, parts...)...)
}

// near tells two times or shares apart that differ by more than 15 %.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.15*want }

func idleOf(r *report.Report, kind string) float64 {
	var ms float64
	for _, i := range r.Idle {
		if i.Kind == kind || kind == "path" && (i.Kind == "operator" || i.Kind == "launch") {
			ms += i.MS
		}
	}
	return ms
}

func TestWildTracesGiveTheTruth(t *testing.T) {
	for _, c := range wildTruths {
		t.Run(c.file, func(t *testing.T) {
			r := diagnoseFile(t, wild(t, c.file+".json.gz"))
			checkFindings(t, r)
			got := ids(r)
			t.Logf("step %.4g ms, busy %.1f %%, recorded %v, findings %v", r.StepMS, 100*r.GPUBusyShare, r.Recorded, costsOf(r))
			if !slices.Equal(r.Recorded, append([]string{}, c.recorded...)) {
				t.Errorf("recorded %v, want %v", r.Recorded, c.recorded)
			}
			above := len(r.Findings) > 0 && r.Findings[0].Severity != rule.Note
			switch {
			case len(c.first) > 0 && (!above || !slices.Contains(c.first, got[0])):
				t.Errorf("findings %v, want one of %v first", costsOf(r), c.first)
			case len(c.first) == 0 && above:
				t.Errorf("findings %v, want none above a note", costsOf(r))
			}
			if c.step > 0 && math.Abs(r.StepMS-c.step) > 0.02*c.step {
				t.Errorf("step %v ms, want %v", r.StepMS, c.step)
			}
			if c.busy > 0 && math.Abs(r.GPUBusyShare-c.busy) > 0.015 {
				t.Errorf("busy %v, want %v", r.GPUBusyShare, c.busy)
			}
			if c.exposed > 0 && math.Abs(r.Breakdown.CommExposedShare-c.exposed) > 0.015 {
				t.Errorf("exposed %v, want %v", r.Breakdown.CommExposedShare, c.exposed)
			}
			for kind, ms := range c.idle {
				if !near(idleOf(r, kind), ms) {
					t.Errorf("idle in %s %v ms, want %v", kind, idleOf(r, kind), ms)
				}
			}
			for id, ms := range c.costs {
				if i := slices.Index(got, id); i < 0 || !near(r.Findings[i].SavesMS, ms) {
					t.Errorf("findings %v, want %s at %v ms", costsOf(r), id, ms)
				}
			}
			if c.where != "" && !slices.ContainsFunc(r.Findings, func(f rule.Finding) bool { return contains(f.Where, c.where) }) {
				t.Errorf("no finding names %s", c.where)
			}
		})
	}
}

func wildRanks(t testing.TB, dir string) *report.Ranks {
	t.Helper()
	paths, err := trace.Expand([]string{wild(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	var list []*report.Report
	for _, p := range paths {
		r := diagnoseFile(t, p)
		r.File = p
		list = append(list, r)
	}
	return report.JoinRanks(list)
}

func TestWildRanks(t *testing.T) {
	t.Run("dlrm", func(t *testing.T) {
		j := wildRanks(t, filepath.Join("param", "dlrm_kineto"))
		exposed := []float64{0.38, 0.56, 0.25, 0.49, 0.36, 0.35, 0.25, 0.13}
		for i, r := range j.Ranks {
			if k := slices.Index(ids(r), "comm-exposed"); k < 0 || r.Findings[k].Severity == rule.Note || math.Abs(r.Findings[k].Share-exposed[i]) > 0.015 {
				t.Errorf("rank %d: %v, want comm-exposed at %v of the step", i, costsOf(r), exposed[i])
			}
		}
		f := j.Findings[0]
		if f.ID != "straggler" || *f.Rank != 7 || j.Waits[7].Last != 5 || j.Matched != 8 {
			t.Errorf("%+v, %+v", f, j.Waits)
		}
		if m := j.Meetings[0]; m.Kind != "all_to_all" || m.Last != 7 || math.Abs(m.LateMS-7.6) > 0.1 {
			t.Errorf("%+v", m)
		}
		if math.Abs(j.Waits[1].WaitMS-11.1) > 0.1 || math.Abs(j.Waits[3].WaitMS-9.6) > 0.1 {
			t.Errorf("%+v", j.Waits)
		}
		t.Logf("%s", j.Verdict())
	})
	t.Run("gloo, a loader", func(t *testing.T) {
		j := wildRanks(t, "gloo_loader_straggler")
		if f := j.Findings[0]; f.ID != "straggler" || *f.Rank != 1 || !slices.ContainsFunc(f.Evidence, func(s string) bool { return contains(s, "its data loader") }) {
			t.Errorf("%+v", f)
		}
		t.Logf("%s", j.Verdict())
	})
	t.Run("gloo, Python", func(t *testing.T) {
		j := wildRanks(t, "gloo_gpu_py_straggler")
		if f := j.Findings[0]; f.ID != "straggler" || *f.Rank != 0 || !contains(f.Where, "slow_augment") || !near(f.SavesMS, 50) {
			t.Errorf("%+v", f)
		}
		t.Logf("%s", j.Verdict())
	})
}

func TestWildDiff(t *testing.T) {
	d := report.Compare(diagnoseFile(t, wild(t, "kineto/resnet50_profiler_api_nw0.json.gz")), diagnoseFile(t, wild(t, "kineto/resnet50_profiler_api_nw4.json.gz")))
	if !near(-d.DeltaMS, 26) || d.Parts[0].What != "idle in the data loader" || !slices.Contains(d.Gone, "loader-starved") {
		t.Errorf("%v ms, %+v, gone %v", d.DeltaMS, d.Parts[0], d.Gone)
	}
	t.Logf("%s", d.Verdict())
	d = report.Compare(diagnoseFile(t, wild(t, "hta/trace_diff_control_control.json.gz")), diagnoseFile(t, wild(t, "hta/trace_diff_test_test.json.gz")))
	if d.Parts[0].What != "compute" || d.DeltaMS < 35 || !slices.Contains(d.Gone, "launch-bound") {
		t.Errorf("%v ms, %+v, gone %v", d.DeltaMS, d.Parts[0], d.Gone)
	}
	t.Logf("%s", d.Verdict())
}

// The same run in both of JAX's forms.
func TestWildJAX(t *testing.T) {
	x := diagnoseFile(t, wild(t, "jax/jax_mi300_conv08.trace.json.gz"))
	y := diagnoseFile(t, wild(t, "jax/mi300_jax_conv_minimal_08_tw003.xplane.pb"))
	if len(x.Breakdown.GPUs) != 8 || len(y.Breakdown.GPUs) != 8 || x.PerStep.Kernels != y.PerStep.Kernels {
		t.Fatalf("%d and %d GPUs, %v and %v kernels", len(x.Breakdown.GPUs), len(y.Breakdown.GPUs), x.PerStep.Kernels, y.PerStep.Kernels)
	}
	for i, g := range x.Breakdown.GPUs {
		h := y.Breakdown.GPUs[i]
		if g.Kernels != h.Kernels || g.Gaps != h.Gaps || math.Abs(g.BusyShare-h.BusyShare) > 1e-4 || math.Abs(g.WidestMS-h.WidestMS) > 1e-3 {
			t.Errorf("%+v and %+v", g, h)
		}
	}
	t.Logf("%d GPUs, %v kernels, busy %.4f and %.4f", len(x.Breakdown.GPUs), x.PerStep.Kernels, x.GPUBusyShare, y.GPUBusyShare)
}

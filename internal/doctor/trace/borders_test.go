package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Lists of spans, at the borders where they touch.
func TestSpans(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []Span
		want []Span
	}{
		{"union of what touches", Union([]Span{{5, 9}, {1, 3}, {3, 4}, {7, 7}, {8, 12}}), []Span{{1, 4}, {5, 12}}},
		{"union with one inside", Union([]Span{{1, 10}, {2, 3}}), []Span{{1, 10}}},
		{"clip", Clip([]Span{{0, 5}, {8, 25}}, []Window{{3, 10}, {10, 20}, {30, 40}}), []Span{{3, 5}, {8, 20}}},
		{"clip outside", Clip([]Span{{20, 30}}, []Window{{3, 20}, {30, 40}}), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	rest, taken := Without([]Span{{0, 10}, {20, 30}}, []Span{{2, 4}, {8, 22}, {29, 40}})
	if !slices.Equal(rest, []Span{{0, 2}, {4, 8}, {22, 29}}) || taken != 2+2+2+1 {
		t.Errorf("without: %v, %d", rest, taken)
	}
	list := []Span{{2, 4}, {8, 22}}
	for g, want := range map[Span]int64{{0, 2}: 0, {3, 9}: 2, {4, 8}: 0, {0, 30}: 16, {21, 22}: 1, {22, 23}: 0} {
		if got := Covered(list, g); got != want {
			t.Errorf("covered %v: %d, want %d", g, got, want)
		}
	}
	if Overlap(Span{1, 5}, Span{4, 9}) != 1 || Overlap(Span{1, 5}, Span{5, 9}) != 0 || Overlap(Span{1, 5}, Span{7, 9}) != 0 || Total(list) != 16 {
		t.Error("overlap or total")
	}
	steps := []Window{{0, 10}, {10, 20}, {25, 30}}
	for at, want := range map[int64]string{-1: "0 false", 0: "0 true", 9: "0 true", 10: "1 true", 20: "2 false", 25: "2 true", 29: "2 true", 30: "3 false"} {
		i, ok := Within(steps, at)
		if got := fmt.Sprint(i, ok); got != want {
			t.Errorf("within %d: %s, want %s", at, got, want)
		}
	}
	if got := tidySteps([]Window{{5, 9}, {0, 5}, {4, 8}, {9, 9}, {9, 12}}); !slices.Equal(got, []Window{{0, 5}, {5, 9}, {9, 12}}) {
		t.Errorf("steps %v", got)
	}
}

// What the vendors' names tell.
func TestVendorsNames(t *testing.T) {
	for name, want := range map[string]CallKind{
		"cudaLaunchKernel": CallLaunch, "cuLaunchKernelEx": CallLaunch, "hipExtModuleLaunchKernel": CallLaunch, "cudaGraphLaunch": CallLaunch, "cudaLaunchHostFunc": CallOther,
		"cudaMemcpyAsync": CallCopy, "cudaMemsetAsync": CallSet, "cudaStreamSynchronize": CallWait, "cudaEventSynchronize": CallWait, "cudaDeviceSynchronize": CallWait,
		"cudaMalloc": CallAlloc, "cudaFree": CallAlloc, "cudaHostAlloc": CallAlloc, "cuMemCreate": CallAlloc, "cuMemAlloc_v2": CallAlloc, "cuMemFree_v2": CallAlloc, "cudaFreeHost": CallAlloc,
		"cuMemAllocAsync": CallOther, "cuMemFreeAsync": CallOther, "cudaMallocAsync": CallOther, "cuMemMap": CallAlloc, "cuMemUnmap": CallAlloc, "cuMemRelease": CallAlloc,
		"cudaStreamBeginCapture": callCapture, "cudaStreamEndCapture": callCapture, "cudaEventQuery": CallOther, "Launch": CallOther, "mySynchronize": CallOther,
	} {
		if got := callKindOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]direction{
		"Memcpy HtoD (Pageable -> Device)": uploadPageable, "Memcpy HtoD (Pinned -> Device)": upload, "Memcpy DtoH (Device -> Pageable)": downloadPageable,
		"Memcpy DtoH (Device -> Pinned)": download, "Memcpy DtoD (Device -> Device)": Inside, "Memcpy M2D": upload, "Memcpy H2D": upload, "Memcpy D2H": download, "Memcpy D2M": download,
	} {
		down := strings.Contains(name, "DtoH") || strings.HasPrefix(name, "Memcpy D2")
		if got := directionOf(name); got != want || got.ToHost() != down || got.Pageable() != strings.Contains(name, "Pageable") {
			t.Errorf("%s: %d, want %d; to the host %v, pageable %v", name, got, want, got.ToHost(), got.Pageable())
		}
	}
	for name, want := range map[string][3]bool{ // full fp32, fp64, layout
		"volta_sgemm_128x64_nn": {true, false, false}, "ampere_sgemm_32x32": {true, false, false}, "sm80_xmma_gemm_f32f32_tf32f32_f32": {}, "ampere_fp16_sgemm_fp16_128x128": {},
		"ampere_bf16_sgemm_bf16": {}, "cutlass_tensorop_sgemm": {}, "volta_fp16_s884gemm": {}, "turing_s1688gemm": {}, "maxwell_scudnn_128x64": {true, false, false},
		"sm80_xmma_gemm_x_ffma_y": {true, false, false}, "implicit_convolve_sgemm<float>": {true, false, false}, "cudnn::dgrad<half>": {}, "cudnn::wgrad<float, 1>": {true, false, false},
		"Cijk_Ailk_Bljk_SB_MT": {true, false, false}, "Cijk_Ailk_Bljk_BBS_MT": {}, "Cijk_Ailk_Bljk_DB_MT": {false, true, false}, "Cijk_Ailk_S_B_MT": {true, false, false},
		"volta_dgemm_64x64": {false, true, false}, "elementwise<double>": {false, true, false}, "add<float, double>": {false, true, false}, "distribution_elementwise<double>": {},
		"index<int64>": {}, "void cudnn::ops::nchwToNhwcKernel<float>": {false, false, true}, "nhwcToNchwKernel": {false, false, true}, "batched_transpose_32x32": {false, false, true}, "mine": {},
	} {
		if got := [3]bool{isFP32Product(name), isFP64Kernel(name), isLayoutKernel(name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]int{"volta_sgemm": 70, "turing_h884": 75, "ampere_x": 80, "sm75_xmma": 75, "sm86_xmma": 86, "a_sm89_b": 89, "sm90_x": 90, "sm100_x": 100, "nvjet_tst": 90, "mine": 0, "sm70_a_sm80_b": 80} {
		if got := chipOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]int{"": 0, "float": 4, "c10::Half": 2, "c10::BFloat16": 2, "double": 8, "long int": 8, "Float8_e4m3fn": 1, "unsigned char": 1, "bool": 1, "short": 2, "int": 4, "Float16": 2, "float64": 8, "int8": 1, "uint8": 1} {
		if got := widthOf([]byte(name)); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]family{"flash_fwd": familyAttention, "implicit_conv": familyConvolution, "nvjet_x": familyProduct, "layer_norm_x": familyNorm, "softmax_x": familySoftmax,
		"multi_tensor_apply": familyOptimizer, "index_put": familyIndex, "reduce_kernel": familyReduce, "vectorized_x": FamilyElementwise, "ncclDevKernel_AllReduce": FamilyComm, "mine": familyOther} {
		if got := familyOf(name); got != want || got.String() == "" {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]vendor{"NVIDIA H200": nvidia, "AMD Instinct MI300X": Amd, "Radeon": Amd, "Instinct": Amd} {
		if got := (GPUModel{Name: name}).Vendor(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	long := strings.Repeat("a", 59)
	for name, want := range map[string]string{
		"void mine<x>": "mine<x>", BackwardPrefix + ": AddBackward0": "backward of AddBackward0", long + "b": long + "b", long + "bc": long + "…",
		"void kernel_of<" + long + ">": "kernel_of", "short<" + long + ">": "short<" + long[:53] + "…",
	} {
		if got := ShortName(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Small parsers of values in an event's arguments.
func TestArguments(t *testing.T) {
	for text, want := range map[string]float32{"[2, 3, 4]": 24, "": 0, "[]": 0, "[7]": 7, "16,1,1": 16, "[0, 3]": 0, "[10, 20": 200} {
		if got := product([]byte(text)); got != want {
			t.Errorf("product of %q: %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]uint64{"[[2, 3], [4]]": 6, "[[], [4]]": 0, "[]": 0, "": 0, "[[5]]": 5, "[[5": 5} {
		if got := firstShape([]byte(text)); got != want {
			t.Errorf("first shape of %q: %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{`["float", "int"]`: "float", `[]`: "", `["`: ""} {
		if got := string(firstWord([]byte(text))); got != want {
			t.Errorf("first word of %q: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]uint32{"0": 0, "12": 12, "4294967295": 4294967295, "4294967296": 4294967295, "-1": 0, "1x": 0, "": 0} {
		if got := count([]byte(text)); got != want {
			t.Errorf("count %q: %v, want %v", text, got, want)
		}
	}
	var a arguments
	if a.details([]byte("grid:16,2,1 block:512,1,1 size:4096")); a.grid != 32 || a.bytes != 4096 {
		t.Errorf("%+v", a)
	}
	f := formOf([]byte(`[[8, 16], [], [[2],[3]], [4]]`), []byte(`["c10::Half", "Scalar", "TensorList", "double"]`), nil)
	if len(f.Inputs) != 4 || !slices.Equal(f.Inputs[0].Dims, []int64{8, 16}) || f.Inputs[0].Width != 2 || f.Inputs[0].FP64 || len(f.Inputs[1].Dims) != 0 || f.Inputs[1].Width != 0 ||
		f.Inputs[3].Elements() != 4 || !f.Inputs[3].FP64 || f.Inputs[3].Width != 8 || f.Inputs[0].Elements() != 128 || f.Inputs[1].Elements() != 0 {
		t.Errorf("%+v", f)
	}
	if got := string(innermostOf([]byte("a.py(1): f;b.py(2): g"))); got != "a.py(1): f" {
		t.Errorf("%q", got)
	}
	if got := string(innermostOf([]byte("a.py(1): f"))); got != "a.py(1): f" {
		t.Errorf("%q", got)
	}
}

// Names with numbers are ordered as people do.
func TestNaturalOrder(t *testing.T) {
	list := []string{"rank10.json", "rank2.json", "rank02b.json", "a", "rank1.json", "", "rank2", "b1", "b"}
	slices.SortFunc(list, natural)
	if want := []string{"", "a", "b", "b1", "rank1.json", "rank2", "rank2.json", "rank02b.json", "rank10.json"}; !slices.Equal(list, want) {
		t.Errorf("%q, want %q", list, want)
	}
	for name, want := range map[string]bool{"a.json": true, "a.json.gz": true, "A.JSON.ZST": true, "x.xplane.pb": true, "r.sqlite": true, "x.trace": true, ".a.json": false, "a.txt": false, "dir/.b.json": false, "a.json.xz": true} {
		if IsTrace(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// A log keeps what it is given, in chunks, and sorts it.
func TestLog(t *testing.T) {
	var l log[int]
	const n = 2*logChunk + 7
	for i := range n {
		l.Add(n - i)
	}
	l.order(func(a, b *int) bool { return *a < *b })
	if l.Len() != n || *l.At(0) != 1 || *l.At(logChunk) != logChunk+1 || *l.At(n - 1) != n {
		t.Fatal("the order is wrong")
	}
	l.cut(logChunk)
	if l.Len() != logChunk || len(l.chunks) != 1 {
		t.Errorf("%d, %d chunks", l.Len(), len(l.chunks))
	}
	l.Add(9)
	if *l.At(logChunk) != 9 || l.Len() != logChunk+1 {
		t.Error("nothing can be added after a cut")
	}
}

// A child may seem to outlive its parent by what rounding adds.
func TestNesting(t *testing.T) {
	o := Op{Start: 100, Dur: 50}
	for at, want := range map[int64]bool{99: false, 100: true, 149: true, 150: false} {
		if o.holdsStart(at) != want {
			t.Errorf("%d: %v", at, !want)
		}
	}
	if o.nest(65530); o.Nested != 65530 {
		t.Error(o.Nested)
	}
	if o.nest(10); o.Nested != 65535 {
		t.Error(o.Nested)
	}
}

// The scalars of an operator are read from their list, at any position among the arguments.
func TestScalarsEndWithTheirList(t *testing.T) {
	for _, args := range []string{
		`{"Input Dims": [[2,3]], "Concrete Inputs": ["", "7"]}`,
		`{"Concrete Inputs": ["", "7"], "Input Dims": [[2,3]]}`,
		`{"Concrete Inputs": ["", "7"] , "Input Dims": [[2,3]] }`,
	} {
		var a arguments
		if _, err := a.parse([]byte(args), 0); err != nil || string(a.values) != `["", "7"]` || string(a.dims) != "[[2,3]]" {
			t.Errorf("%s: %q and %q, %v", args, a.values, a.dims, err)
		}
	}
}

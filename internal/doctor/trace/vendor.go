package trace

import (
	"bytes"
	"strings"

	"haul/internal/doctor/phrase"
)

// All names that rules match are in this file or in the rule that uses them. They are names of
// vendors: PyTorch's operators and annotations, the driver's calls, kernel families of the vendors'
// libraries. A user's name would make a finding depend on the spelling of a program.

// BackwardPrefix begins the names of operators of autograd's engine.
const BackwardPrefix = "autograd::engine::evaluate_function"

// vendor is the maker of a GPU.
type vendor uint8

const (
	nvidia vendor = iota
	Amd
)

func (c GPUModel) Vendor() vendor {
	if strings.Contains(c.Name, "AMD") || strings.Contains(c.Name, "Instinct") || strings.Contains(c.Name, "Radeon") {
		return Amd
	}
	return nvidia
}

// ShortName shortens a name to fit a line. It removes template arguments and parameters first.
func ShortName(s string) string {
	s = phrase.Printable(s)
	s = strings.Replace(s, BackwardPrefix+": ", "backward of ", 1)
	s = strings.TrimPrefix(s, "void ")
	if i := strings.Index(s, " object at 0x"); i > 0 && strings.HasSuffix(s, ">") { // an address in a Python name
		s = s[:i] + ">"
	}
	const limit = 60
	if len(s) <= limit {
		return s
	}
	if i := strings.IndexByte(s, '<'); i > 8 && i <= limit {
		return s[:i]
	}
	return strings.ToValidUTF8(s[:limit-1], "") + "…"
}

// CallKind is the kind of a driver call, as far as rules distinguish it.
type CallKind uint8

const (
	CallOther CallKind = iota
	CallLaunch
	CallCopy
	CallSet
	CallWait
	CallAlloc
	callCapture // begins or ends the capture of a graph
)

// callKindOf removes the vendor's prefix and matches the verb, so that the runtime, the driver and
// HIP give equal kinds.
func callKindOf(s string) CallKind {
	verb := s
	for _, prefix := range []string{"cuda", "cu", "hip", "mtia", "xpu"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			verb = rest
			break
		}
	}
	switch {
	case verb == s:
		return CallOther
	case verb == "StreamBeginCapture", verb == "StreamEndCapture", verb == "StreamBeginCaptureToGraph":
		return callCapture
	case strings.Contains(verb, "Launch") && !strings.Contains(verb, "HostFunc"):
		return CallLaunch
	case strings.HasPrefix(verb, "Memcpy"):
		return CallCopy
	case strings.HasPrefix(verb, "Memset"):
		return CallSet
	case strings.HasSuffix(verb, "Synchronize"):
		return CallWait
	case verb == "Malloc", verb == "Free", verb == "HostAlloc", verb == "MallocHost", verb == "HostMalloc", verb == "FreeHost", verb == "HostFree",
		strings.HasPrefix(verb, "MemAlloc") && !strings.HasSuffix(verb, "Async"), strings.HasPrefix(verb, "MemFree") && !strings.HasSuffix(verb, "Async"),
		verb == "MemCreate", verb == "MemRelease", verb == "MemMap", verb == "MemUnmap":
		return CallAlloc
	}
	return CallOther
}

// isForeignRuntime reports whether a category is a runtime of accelerators with calls unlike
// CUDA's.
func isForeignRuntime(cat []byte) bool {
	return bytes.HasPrefix(cat, []byte("mtia")) || bytes.HasPrefix(cat, []byte("xpu")) || bytes.HasPrefix(cat, []byte("privateuse1"))
}

// foreignKind derives the kind from a foreign call's name. An unknown call whose number has work is
// a launch.
func foreignKind(name []byte, correlation uint32) CallKind {
	lower := bytes.ToLower(name)
	switch {
	case bytes.Contains(lower, []byte("sync")), bytes.Contains(lower, []byte("wait")), bytes.HasSuffix(lower, []byte("queuefinish")):
		return CallWait
	case bytes.Contains(lower, []byte("copy")), bytes.Contains(lower, []byte("memcpy")), bytes.Contains(lower, []byte("membufferread")),
		bytes.Contains(lower, []byte("membufferwrite")):
		return CallCopy
	case bytes.Contains(lower, []byte("alloc")), bytes.Contains(lower, []byte("free")):
		return CallAlloc
	case correlation != 0, bytes.Contains(lower, []byte("launch")):
		return CallLaunch
	}
	return CallOther
}

// direction is the direction of a copy and the kind of host memory.
type direction uint8

const (
	Inside direction = iota // from a device to a device
	upload
	uploadPageable
	download
	downloadPageable
)

// directionOf parses CUPTI's descriptions, such as "Memcpy HtoD (Pageable -> Device)", and those of
// Intel's profiler, "Memcpy M2D" and "Memcpy H2D": M is host memory that the runtime did not
// allocate.
func directionOf(s string) direction {
	up := strings.Contains(s, "HtoD") || strings.HasPrefix(s, "Memcpy H2D") || strings.HasPrefix(s, "Memcpy M2D")
	down := strings.Contains(s, "DtoH") || strings.HasPrefix(s, "Memcpy D2H") || strings.HasPrefix(s, "Memcpy D2M")
	pageable := strings.Contains(s, "Pageable")
	switch {
	case up && pageable:
		return uploadPageable
	case up:
		return upload
	case down && pageable:
		return downloadPageable
	case down:
		return download
	}
	return Inside
}

func (d direction) ToHost() bool { return d == download || d == downloadPageable }

func (d direction) Pageable() bool { return d == uploadPageable || d == downloadPageable }

var stepPrefix, loaderPrefix = []byte("ProfilerStep#"), []byte("enumerate(DataLoader)")

func isStep(s []byte) bool { return bytes.HasPrefix(s, stepPrefix) }

func isLoader(s []byte) bool { return bytes.HasPrefix(s, loaderPrefix) }

// isUpdate reports whether PyTorch's annotation marks an optimizer's step:
// Optimizer.step#AdamW.step.
func isUpdate(s []byte) bool { return bytes.HasPrefix(s, []byte("Optimizer.step#")) }

// isZeroing reports whether PyTorch's annotation marks an optimizer's zero_grad.
func isZeroing(s []byte) bool { return bytes.HasPrefix(s, []byte("Optimizer.zero_grad#")) }

// isRegion reports whether a name is a loop of the framework around many operators.
func isRegion(s []byte) bool {
	for _, prefix := range []string{"Optimizer.", "Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction"} {
		if bytes.HasPrefix(s, []byte(prefix)) {
			return true
		}
	}
	return false
}

// isCompiling reports whether a record is of torch.compile compiling.
func isCompiling(s []byte) bool {
	return bytes.HasSuffix(s, []byte(" (dynamo_timed)")) || string(s) == "entire_frame_compile" || string(s) == "entire_backward_compile"
}

// isCompiled reports whether a region contains code that torch.compile made.
func isCompiled(s []byte) bool {
	return bytes.HasPrefix(s, []byte("Torch-Compiled Region")) || bytes.HasPrefix(s, []byte("## Call CompiledFxGraph"))
}

// isProfilers reports whether the profiler itself causes an overhead. Others are only recorded by
// it: a full queue of launches, because the CPU is far ahead, and code that the driver compiles or
// loads.
func isProfilers(s []byte) bool {
	for _, other := range []string{"Command Buffer Full", "Driver Compiler", "Lazy Function Loading", "Runtime Triggered Module Loading"} {
		if string(s) == other {
			return false
		}
	}
	return true
}

// isWrapper reports whether PyTorch records a whole region as this operator. A cause that is
// attributed to the region would be attributed to everything else in it.
func isWrapper(s string) bool {
	for _, prefix := range []string{"ProfilerStep#", "enumerate(DataLoader)", "Optimizer.", "Torch-Compiled Region",
		"## Call CompiledFxGraph", "CompiledFunction", "DistributedDataParallel.forward", "TorchDynamo", "AOTDispatcher"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// isBackend reports whether a name is PyTorch's annotation around a collective: nccl:all_reduce.
func isBackend(s []byte) bool {
	for _, prefix := range []string{"nccl:", "gloo:", "rccl:", "mpi:", "ucc:", "xccl:", "hccl:"} {
		if len(s) > len(prefix) && string(s[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

// OnHost reports whether a backend's collective runs on the CPU thread of its annotation.
func OnHost(s string) bool { return strings.HasPrefix(s, "gloo:") || strings.HasPrefix(s, "mpi:") }

// isFP32Product reports whether a kernel is a matrix product or convolution of cuBLAS, cuDNN,
// CUTLASS or Tensile on the fp32 units: sgemm, scudnn, xmma kernels that multiply by ffma, cuDNN's
// engines of type float. Kernels of these families that use tf32, or half precision with sums in
// fp32, have it in their names.
func isFP32Product(s string) bool {
	if strings.Contains(s, "tf32") || strings.Contains(s, "tensorop") || strings.Contains(s, "s1688") || strings.Contains(s, "s884") ||
		strings.Contains(s, "fp16_sgemm") || strings.Contains(s, "bf16_sgemm") {
		return false
	}
	switch {
	case strings.Contains(s, "sgemm"), strings.Contains(s, "scudnn"), strings.Contains(s, "gemm") && strings.Contains(s, "_ffma_"):
		return true
	case strings.Contains(s, "dgrad") || strings.Contains(s, "wgrad") || strings.Contains(s, "implicit_convolve") || strings.Contains(s, "convolve_common") ||
		strings.Contains(s, "implicit_con") || strings.Contains(s, "conv2d_grouped") || strings.Contains(s, "cudnn::winograd"):
		return strings.Contains(s, "<float") || strings.Contains(s, "sgemm")
	case strings.HasPrefix(s, "Cijk_"):
		return strings.Contains(s, "_SB_") || strings.Contains(s, "_S_B_")
	}
	return false
}

// chipOf parses the architecture in a kernel's name: sm80_xmma, volta_sgemm. Libraries also contain
// kernels of older architectures, so the highest one in a trace is a lower bound.
func chipOf(s string) int {
	chip := 0
	for _, c := range []struct {
		name string
		chip int
	}{{"volta_", 70}, {"turing_", 75}, {"ampere_", 80}, {"sm70_", 70}, {"sm75_", 75}, {"sm80_", 80}, {"sm86_", 86}, {"sm89_", 89}, {"sm90_", 90}, {"sm100_", 100}, {"nvjet", 90}} {
		if strings.HasPrefix(s, c.name) || strings.Contains(s, "_"+c.name) {
			chip = max(chip, c.chip)
		}
	}
	return chip
}

// widthOf returns the bytes per element of a PyTorch type.
func widthOf(b []byte) int {
	s := strings.ToLower(string(b))
	switch {
	case s == "":
		return 0
	case strings.Contains(s, "float8"), strings.Contains(s, "char"), strings.Contains(s, "byte"), strings.Contains(s, "bool"), s == "int8", s == "uint8":
		return 1
	case strings.Contains(s, "bfloat16"), strings.Contains(s, "half"), strings.Contains(s, "float16"), strings.Contains(s, "short"):
		return 2
	case strings.Contains(s, "double"), strings.Contains(s, "long"), strings.Contains(s, "int64"), strings.Contains(s, "float64"):
		return 8
	}
	return 4
}

// innermostOf returns the first frame of a call stack in one string, innermost first.
func innermostOf(b []byte) []byte {
	if i := bytes.IndexByte(b, ';'); i >= 0 {
		return bytes.TrimSpace(b[:i])
	}
	return b
}

// isInner reports whether rules examine an operator also inside others: products, copies, reads of
// single values, checks of anomaly mode, and operators of a backward pass.
func isInner(s string) bool {
	switch s {
	case "aten::isnan", "aten::copy_", "aten::_local_scalar_dense", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
		"aten::convolution", "aten::zero_":
		return true
	}
	return strings.HasPrefix(s, "aten::") && (strings.HasSuffix(s, "_backward") || strings.HasSuffix(s, "_backward_data"))
}

// isValued reports whether an operator's work depends on scalars: strides and groups, causal masks.
func isValued(s string) bool {
	return strings.HasPrefix(s, "aten::conv") || strings.HasPrefix(s, "aten::_convolution") ||
		strings.HasPrefix(s, "aten::scaled_dot_product") || strings.HasPrefix(s, "aten::_scaled_dot_product")
}

// IsBackward reports whether an operator is of autograd's engine, in old profilers' names too.
func IsBackward(s string) bool {
	return strings.HasPrefix(s, BackwardPrefix) || strings.HasPrefix(s, "torch::autograd::") ||
		!strings.Contains(s, "::") && strings.HasSuffix(strings.TrimRight(s, "0123456789"), "Backward")
}

// isFP64Kernel reports whether a kernel has double precision: dgemm and the like, and templates.
func isFP64Kernel(s string) bool {
	lower := strings.ToLower(s)
	if strings.Contains(lower, "distribution") || strings.Contains(lower, "int64") && !strings.Contains(lower, "double") {
		return false
	}
	for _, w := range []string{"dgemm", "d884gemm", "f64gemm", "_f64f64", "<double", "double>", ", double", "_double_", "d1688gemm"} {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return strings.HasPrefix(s, "Cijk_") && strings.Contains(s, "_DB_")
}

// isLayoutKernel reports whether cuDNN, MIOpen or inductor adds the kernel to convolutions, to
// change the order of a tensor's dimensions.
func isLayoutKernel(s string) bool {
	lower := strings.ToLower(s)
	for _, w := range []string{"nchwtonhwc", "nhwctonchw", "nchw2nhwc", "nhwc2nchw", "batched_transpose_", "im2col"} {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}

// GPUModel is a GPU in the trace's list of devices.
type GPUModel struct {
	Name         string
	Major, Minor int
	Processors   int
}

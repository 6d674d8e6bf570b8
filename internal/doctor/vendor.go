package doctor

import (
	"bytes"
	"strings"
)

// Every name that a rule may know stands in this file or in the rule that uses it, and all of them
// are the vendor's: PyTorch's operators and annotations, the driver's calls, kernel families of the
// vendor's libraries. A user's name here would make a finding depend on how a program is spelled.

// callKind is what a driver call does, as far as a rule cares.
type callKind uint8

const (
	callOther callKind = iota
	callLaunch
	callCopy
	callSet
	callWait
	callAlloc
)

// callKindOf drops the maker's prefix and reads the verb, so that the runtime, the driver and HIP
// count alike.
func callKindOf(s string) callKind {
	verb := s
	for _, prefix := range []string{"cuda", "cu", "hip"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			verb = rest
			break
		}
	}
	switch {
	case verb == s:
		return callOther
	case strings.Contains(verb, "Launch") && !strings.Contains(verb, "HostFunc"):
		return callLaunch
	case strings.HasPrefix(verb, "Memcpy"):
		return callCopy
	case strings.HasPrefix(verb, "Memset"):
		return callSet
	case strings.HasSuffix(verb, "Synchronize"):
		return callWait
	case verb == "Malloc", verb == "Free", verb == "HostAlloc", verb == "MallocHost", verb == "FreeHost", verb == "HostFree",
		strings.HasPrefix(verb, "MemAlloc") && !strings.HasSuffix(verb, "Async"), strings.HasPrefix(verb, "MemFree") && !strings.HasSuffix(verb, "Async"),
		verb == "MemCreate", verb == "MemRelease", verb == "MemMap", verb == "MemUnmap":
		return callAlloc
	}
	return callOther
}

// direction is where a copy goes and what kind of host memory it touches.
type direction uint8

const (
	inside direction = iota // from a device to a device
	upload
	uploadPageable
	download
	downloadPageable
)

// directionOf reads CUPTI's words, such as "Memcpy HtoD (Pageable -> Device)".
func directionOf(s string) direction {
	up, down := strings.Contains(s, "HtoD"), strings.Contains(s, "DtoH")
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
	return inside
}

func (d direction) toHost() bool   { return d == download || d == downloadPageable }
func (d direction) pageable() bool { return d == uploadPageable || d == downloadPageable }

var stepPrefix, loaderPrefix = []byte("ProfilerStep#"), []byte("enumerate(DataLoader)")

func isStep(s []byte) bool   { return bytes.HasPrefix(s, stepPrefix) }
func isLoader(s []byte) bool { return bytes.HasPrefix(s, loaderPrefix) }

// isWrapper names what PyTorch records as operators around whole regions. Charging a cause with the
// region that holds it would charge it with everything else there.
func isWrapper(s string) bool {
	for _, prefix := range []string{"ProfilerStep#", "enumerate(DataLoader)", "Optimizer.", "Torch-Compiled Region",
		"## Call CompiledFxGraph", "CompiledFunction", "DistributedDataParallel.forward", "TorchDynamo", "AOTDispatcher"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// isFP32Product tells the matrix products and convolutions of cuBLAS, cuDNN and CUTLASS that run on
// the plain fp32 units: sgemm, and xmma kernels that multiply by ffma. tf32 kernels of the same
// families say so in their names.
func isFP32Product(s string) bool {
	if strings.Contains(s, "tf32") || strings.Contains(s, "tensorop") {
		return false
	}
	return strings.Contains(s, "sgemm") || strings.Contains(s, "gemm") && strings.Contains(s, "_ffma_")
}

package trace

import (
	"strings"
)

// A kernel's family is derived from the kernel names of the vendors' libraries and of PyTorch.
// Reports show it. Of the findings, only those about collectives depend on it.

// family is the computation of a kernel.
type family uint8

const (
	familyOther family = iota
	familyProduct
	familyConvolution
	familyAttention
	familyNorm
	familyReduce
	FamilyElementwise
	familyIndex
	familySoftmax
	familyOptimizer
	FamilyComm
	Families
)

func (f family) String() string {
	return [...]string{"other kernels", "matrix products", "convolutions", "attention", "normalisation", "reductions",
		"elementwise", "indexing and sorting", "softmax and losses", "optimizer", "communication"}[f]
}

// familyWords are tried in order: specific words before general ones.
var familyWords = []struct {
	family family
	words  []string
}{
	{familyAttention, []string{"flash", "fmha", "attention", "attn", "mha_", "_mla", "paged"}},
	{familyConvolution, []string{"conv", "scudnn", "dgrad", "wgrad", "winograd", "cudnn::", "im2col", "miopen", "igemm", "maxpool", "max_pool", "avg_pool"}},
	{familyProduct, []string{"gemm", "gemv", "nvjet", "cijk_", "cublas", "cutlass", "matmul", "_mm_", "wvsplitk", "splitkreduce", "kernel2"}},
	{familyNorm, []string{"norm", "welford", "bn_fw", "bn_bw"}},
	{familySoftmax, []string{"softmax", "nll_loss", "cross_entropy", "mse_loss"}},
	{familyOptimizer, []string{"multi_tensor", "adam", "sgd", "foreach"}},
	{familyIndex, []string{"index", "gather", "scatter", "sort", "topk", "embedding", "cat", "nonzero", "scan"}},
	{familyReduce, []string{"reduce", "triton_red", "triton_per"}},
	{FamilyElementwise, []string{"elementwise", "triton_poi", "fill", "copybuffer", "fillbuffer", "vectorized", "pointwise", "dropout"}},
}

func familyOf(s string) family {
	if collectiveOf(s) != "" {
		return FamilyComm
	}
	s = strings.ToLower(s)
	for _, f := range familyWords {
		for _, w := range f.words {
			if strings.Contains(s, w) {
				return f.family
			}
		}
	}
	return familyOther
}

// collectiveOf returns the collective that a kernel or an annotation carries out: kernels of NCCL
// and RCCL, custom all-reduces of inference engines, annotations of gloo. It returns "" for other
// names.
func collectiveOf(s string) string {
	lower := strings.ToLower(s)
	_, kind, annotated := strings.Cut(lower, ":")
	switch {
	case annotated && isBackend([]byte(lower)):
		return plainCollective(kind, "communication")
	case strings.Contains(lower, "nccl") && !strings.HasPrefix(lower, "nccl:"), strings.Contains(lower, "rccl"), strings.Contains(lower, "mscclpp"), strings.Contains(lower, "nvshmem"):
		return plainCollective(lower, "communication")
	case strings.Contains(lower, "cross_device_reduce"), strings.Contains(lower, "all_reduce_kernel"), strings.Contains(lower, "allreduce_fusion"),
		strings.Contains(lower, "one_shot_all_reduce"), strings.Contains(lower, "two_shot_all_reduce"), strings.Contains(lower, "multimem_all_reduce"),
		strings.Contains(lower, "oneshotallreduce"), strings.Contains(lower, "twoshotallreduce"), strings.Contains(lower, "quickreduce"),
		strings.Contains(lower, "allreduce_prototype"), strings.Contains(lower, "customallreduce"), strings.Contains(lower, "custom_all_reduce"):
		return "all_reduce"
	case strings.Contains(lower, "deep_ep"), strings.Contains(lower, "ep::internode"), strings.Contains(lower, "ep::intranode"):
		return "all_to_all"
	case strings.Contains(lower, "cross_device_gather"), strings.Contains(lower, "all_gather_kernel"):
		return "all_gather"
	}
	return ""
}

// plainCollective normalises a collective's name: AllReduce, allreduce and all_reduce are the same.
func plainCollective(s, otherwise string) string {
	s = strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
	for _, c := range []struct{ word, name string }{
		{"reducescatter", "reduce_scatter"}, {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"alltoall", "all_to_all"},
		{"sendrecv", "send_recv"}, {"broadcast", "broadcast"}, {"barrier", "barrier"}, {"scatter", "scatter"}, {"gather", "gather"},
		{"reduce", "reduce"}, {"send", "send_recv"}, {"recv", "send_recv"}, {"coalesced", "coalesced"},
	} {
		if strings.Contains(s, c.word) {
			return c.name
		}
	}
	return otherwise
}

package trace

import (
	"testing"
)

func TestCollectiveNames(t *testing.T) {
	for _, name := range []string{"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "rcclDevKernel_AllGather", "void vllm::cross_device_reduce_1stage<__half, 8>(...)", "gloo:all_reduce", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"} {
		if collectiveOf(name) == "" {
			t.Errorf("%s is no communication", name)
		}
	}
	for _, name := range []string{"void at::native::reduce_kernel<512, 1>", "ampere_sgemm_128x64_tn", "my:all_reduce", "aten::all", "splitKreduce_kernel"} {
		if c := collectiveOf(name); c != "" {
			t.Errorf("%s is taken for %s", name, c)
		}
	}
}

package cpu

import "golang.org/x/sys/cpu"

// avx512 and avx2 start from plain Go and replace each entry that has assembly.
var avx512, avx2 = plain, plain

// vectorSets finishes the tables and returns those this processor and its operating system support.
func vectorSets() []*primitives {
	avx512.name, avx2.name = "avx512", "avx2"
	avx512.gemm, avx2.gemm = gemmAVX512, gemmAVX2
	var out []*primitives
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasFMA {
		out = append(out, &avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		out = append(out, &avx2)
	}
	return out
}

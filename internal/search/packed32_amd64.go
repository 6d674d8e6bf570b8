package search

import "golang.org/x/sys/cpu"

// flatBests are the versions that this processor has, the fastest first.
var flatBests = func() (list []func(*flatAsk) (int32, int32)) {
	if cpu.X86.HasAVX512F {
		list = append(list, flatBestAVX512)
	}
	if cpu.X86.HasAVX2 {
		list = append(list, flatBestAVX2)
	}
	return append(list, flatBestGo)
}()

var flatAVX512, flatAVX2 = cpu.X86.HasAVX512F, cpu.X86.HasAVX2

// flatBest is flatBestGo by the quickest version.
func flatBest(a *flatAsk) (int32, int32) {
	switch {
	case flatAVX512:
		return flatBestAVX512(a)
	case flatAVX2:
		return flatBestAVX2(a)
	}
	return flatBestGo(a)
}

// flatBestAVX512 is flatBestGo for sixteen positions at a time.
//
//go:noescape
func flatBestAVX512(a *flatAsk) (cost, at int32)

// flatBestAVX2 is flatBestGo for eight positions at a time.
//
//go:noescape
func flatBestAVX2(a *flatAsk) (cost, at int32)

// rankMost is how many rankAVX512 sorts.
const rankMost = 32

// rankAVX512 is sortByKey of n customers, from a copy of the list. There is room for rankMost keys.
//
//go:noescape
func rankAVX512(keys *uint64, n int, list, of *int32)

package search

import "golang.org/x/sys/cpu"

// denseQuick reports whether the processor has denseBestQuick.
var denseQuick = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW

// denseBestQuick is denseBestGo for thirty-two positions at a time, for costs below denseCost.
//
//go:noescape
func denseBestQuick(a *denseAsk) (cost, at int32)

// denseLongQuick is denseBestGo for sixteen positions at a time where distances take 32 bits, for
// costs below longCost.
//
//go:noescape
func denseLongQuick(a *denseAsk) (cost, at int32)

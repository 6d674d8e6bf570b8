//go:build !amd64

package search

const denseQuick = false

func denseBestQuick(a *denseAsk) (cost, at int32) { return denseBestGo(a) }

func denseLongQuick(a *denseAsk) (cost, at int32) { return denseBestGo(a) }

//go:build !amd64

package search

var flatBests = []func(*flatAsk) (int32, int32){flatBestGo}

func flatBest(a *flatAsk) (int32, int32) { return flatBestGo(a) }

//go:build !amd64

package search

var flatBests = []func(*flatAsk) (int32, int32){flatBestGo}

func flatBest(a *flatAsk) (int32, int32) { return flatBestGo(a) }

const (
	flatAVX512 = false
	rankMost   = 32
)

func rankAVX512(keys *uint64, n int, list, of *int32) {}

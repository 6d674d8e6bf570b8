package run

import "runtime"

// Cores of two kinds: shards are of equal work, so that a step waits for its slowest worker, and a
// worker on an efficiency core holds up those on performance cores. Workers are therefore as many
// as performance cores unless somebody names a number; device.Auto times both.

// PerformanceCores is how many workers the fast cores of this processor serve: all of them where
// they are of one kind, or where the system does not tell. It is never more than Go may use.
func PerformanceCores() int {
	most := runtime.GOMAXPROCS(0)
	if n := fastCores(); n > 0 {
		return min(n, most)
	}
	return most
}

package analysis

import (
	"cmp"
	"slices"
)

func Median[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

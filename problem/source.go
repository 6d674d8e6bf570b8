package problem

import "embed"

// Source holds problem.go and math.go: the compiler checks problem files against their
// declarations, and `haul problem new` copies them next to a file so that editors and `go test`
// work without a network.
//
//go:embed problem.go math.go
var Source embed.FS

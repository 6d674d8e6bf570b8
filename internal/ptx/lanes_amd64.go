package ptx

import "golang.org/x/sys/cpu"

// fast reports whether the host has the vector instructions of lanes_amd64.s. Their results equal
// those of the Go loops, bit for bit, except for the payload of NaN and products below float32's
// normal numbers.
var fast = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// fmaLanes computes d = a·b+c, each rounded once.
//
//go:noescape
func fmaLanes(d, a, b, c *[lanes]float32)

// widenHalves converts the fp16 halves of 32 registers to floats, the low half first.
//
//go:noescape
func widenHalves(d *[2 * lanes]float32, a *[lanes]uint32)

// blockProduct adds a·b to c; each has eight rows and columns.
//
//go:noescape
func blockProduct(c, a, b *[2 * lanes]float32)

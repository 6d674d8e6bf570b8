package ptx

import "golang.org/x/sys/cpu"

// fast is whether the host has the vector instructions of lanes_amd64.s. They compute what the
// plain loops do, bit for bit but for the payload of NaN and products below float32's normal
// numbers.
var fast = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// fmaLanes is a·b+c, each rounded once.
//
//go:noescape
func fmaLanes(d, a, b, c *[lanes]float32)

// widenHalves makes floats of the halves of 32 registers, the low half first.
//
//go:noescape
func widenHalves(d *[2 * lanes]float32, a *[lanes]uint32)

// blockProduct adds a·b to c, eight rows and columns each.
//
//go:noescape
func blockProduct(c, a, b *[2 * lanes]float32)

//go:build !amd64

package ptx

// fast is false: only amd64 has vector instructions.
const fast = false

func fmaLanes(d, a, b, c *[lanes]float32)                 { panic("no vector instructions") }
func widenHalves(d *[2 * lanes]float32, a *[lanes]uint32) { panic("no vector instructions") }
func blockProduct(c, a, b *[2 * lanes]float32)            { panic("no vector instructions") }

package cpu

import (
	"sync"
	"unsafe"
)

// Products by a library of the system that is opened at run time: Accelerate on macOS, which
// reaches the processor's matrix units, or the one that LibraryVariable names. The rest of the
// primitives stay those of the fastest set here.
//
// What a reader could break: a library is called through Fortran's sgemm_, whose arguments are all
// addresses, because no float can be handed over together with integers without cgo. Fortran's
// matrices lie by columns, so what is computed is Cᵀ = Bᵀ·Aᵀ. Whether a product goes to the library
// depends on its sizes and strides alone, never on a worker: equal arguments, equal bits.

// blasCall is one call's arguments, where the library reads them.
type blasCall struct {
	straight, turned byte
	m, n, k          int32
	lda, ldb, ldc    int32
	alpha, beta      float32
}

// blasCalls keeps calls, so that a product takes nothing from the heap.
var blasCalls = sync.Pool{New: func() any { return &blasCall{straight: 'N', turned: 'T', alpha: 1} }}

// blasLeast is the fewest multiply-adds of a product that is worth a call.
const blasLeast = 1 << 15

// blasTable is the set with products by the library's sgemm_ at an address.
func blasTable(name string, own *primitives, sgemm uintptr) primitives {
	p := *own
	p.name = name
	p.gemm = func(g *gemmArgs) {
		if !blasTakes(g) {
			own.gemm(g)
			return
		}
		blasStart(g)
		for j := 0; j < g.n; j += panel {
			blasPanel(sgemm, g, j)
		}
	}
	return p
}

// blasTakes tells whether the library knows such strides, and is worth the call.
func blasTakes(g *gemmArgs) bool {
	return g.m > 1 && g.m*g.n*g.k >= blasLeast && (g.aks == 1 && g.ars >= g.k || g.ars == 1 && g.aks >= g.m) && g.ldc >= g.n
}

// blasStart puts bias + R into C, where there is either.
func blasStart(g *gemmArgs) {
	if g.bias == nil && (g.r == nil || g.r == g.c && g.ldr == g.ldc) {
		return
	}
	for i := range g.m {
		c := unsafe.Slice(at(g.c, i*g.ldc), g.n)
		if g.r != nil {
			copy(c, unsafe.Slice(at(g.r, i*g.ldr), g.n))
		} else {
			clear(c)
		}
		if g.bias != nil {
			for j, v := range unsafe.Slice((*float32)(g.bias), g.n) {
				c[j] += v
			}
		}
	}
}

// blasPanel adds the products with the panel of B at column j to C, or makes C of them.
func blasPanel(sgemm uintptr, g *gemmArgs, j int) {
	c := blasCalls.Get().(*blasCall)
	c.m, c.n, c.k = int32(min(panel, g.n-j)), int32(g.m), int32(g.k)
	c.lda, c.ldb, c.ldc, c.beta = int32(g.bks), int32(g.ars), int32(g.ldc), 0
	turn := &c.straight
	if g.aks != 1 {
		turn, c.ldb = &c.turned, int32(g.aks)
	}
	if g.bias != nil || g.r != nil {
		c.beta = 1
	}
	callFortran(sgemm, &[13]unsafe.Pointer{unsafe.Pointer(&c.straight), unsafe.Pointer(turn), unsafe.Pointer(&c.m), unsafe.Pointer(&c.n), unsafe.Pointer(&c.k),
		unsafe.Pointer(&c.alpha), unsafe.Add(g.b, j/panel*g.bps*4), unsafe.Pointer(&c.lda), g.a, unsafe.Pointer(&c.ldb),
		unsafe.Pointer(&c.beta), unsafe.Add(g.c, j*4), unsafe.Pointer(&c.ldc)})
	blasCalls.Put(c)
}

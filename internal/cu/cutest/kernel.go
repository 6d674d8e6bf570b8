package cutest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"haul/internal/ptx"
)

// function is a kernel of a module.
type function struct {
	p       *ptx.Program
	image   string // first line of its module
	dynamic int    // limit of its dynamic shared memory, in bytes
}

// plainShared is the shared memory that a block can use without opting in to more.
const plainShared = 48 << 10

// loaded is a module with the first line of its text.
type loaded struct {
	*ptx.Module
	first string
}

// Launched returns the kernels that the process has launched, by the first line of their module's
// text.
func Launched() map[string][]string {
	use.Lock()
	defer use.Unlock()
	out := map[string][]string{}
	for image, kernels := range launched {
		out[image] = slices.Sorted(maps.Keys(kernels))
	}
	return out
}

var launched = map[string]map[string]bool{}

// ran records a launch.
func (f *function) ran() {
	if launched[f.image] == nil {
		launched[f.image] = map[string]bool{}
	}
	launched[f.image][f.p.Name] = true
}

func loadModule(m *uintptr, image unsafe.Pointer) (uintptr, string) {
	module, err := ptx.Parse([]byte(text(image)))
	if err != nil {
		return said(invalidPTX, "%v", err), err.Error()
	}
	for _, c := range here.gpus {
		if have := c.Major*10 + c.Minor; module.Needs() > have || module.Only() && module.Needs() != have {
			return said(invalidPTX, "code for %s on %s", module.Target, c.Name), "code for another card"
		}
	}
	first, _, _ := strings.Cut(text(image), "\n")
	*m = here.add(&loaded{module, first})
	return success, ""
}

func getFunction(f *uintptr, m uintptr, name string) uintptr {
	module, ok := find[*loaded](m)
	if !ok {
		return gone(false)
	}
	if !slices.Contains(module.Kernels(), name) {
		return said(notFound, "no kernel %s", name)
	}
	p, err := module.Compile(name)
	if err != nil {
		return said(invalidImage, "%v", err)
	}
	*f = here.add(&function{p, module.first, plainShared - min(p.Static(), plainShared)})
	return success
}

// Attributes of a function.
const (
	attrShared     = 1
	attrLocal      = 3
	attrRegisters  = 4
	attrMaxDynamic = 8
)

func setAttribute(f uintptr, attribute, value int32) uintptr {
	fn, ok := find[*function](f)
	if !ok {
		return gone(false)
	}
	if attribute != attrMaxDynamic {
		return said(invalidValue, "function attribute %d is not known here", attribute)
	}
	for _, c := range here.gpus {
		if int(value)+fn.p.Static() > c.Shared {
			return said(invalidValue, "%s: %d bytes of shared memory and %d of its own, %s has %d", fn.p.Name, value, fn.p.Static(), c.Name, c.Shared)
		}
	}
	fn.dynamic = int(value)
	return success
}

func getAttribute(v *int32, attribute int32, f uintptr) uintptr {
	fn, ok := find[*function](f)
	if !ok {
		return gone(false)
	}
	switch attribute {
	case attrShared:
		*v = int32(fn.p.Static())
	case attrLocal:
		*v = int32(fn.p.Local())
	case attrRegisters: // unknown: it depends on the driver's compiler
		*v = 32
	default:
		return said(invalidValue, "function attribute %d is not known here", attribute)
	}
	return success
}

// launch is a kernel with its arguments.
type launch struct {
	ptx.Launch
	f *function
}

// bind copies the arguments of a launch, by the sizes of the kernel's parameters.
func (f *function) bind(grid, block [3]uint32, shared uint32, params unsafe.Pointer) (launch, error) {
	l := launch{ptx.Launch{Program: f.p, Dynamic: int(shared), Memory: &here.memory, Races: here.gpus[0].Races}, f}
	if int(shared) > f.dynamic {
		return l, fmt.Errorf("kernel %s: %d bytes of dynamic shared memory, it may have %d", f.p.Name, shared, f.dynamic)
	}
	for i := range 3 {
		l.Grid[i], l.Block[i] = int(grid[i]), int(block[i])
		if most := [3]int{1<<31 - 1, 1<<16 - 1, 1<<16 - 1}[i]; l.Grid[i] > most {
			return l, fmt.Errorf("kernel %s: a grid of %v blocks", f.p.Name, l.Grid)
		}
	}
	sizes := f.p.Params()
	var values [][]byte
	for i, p := range unsafe.Slice((*unsafe.Pointer)(params), len(sizes)) {
		values = append(values, unsafe.Slice((*byte)(p), sizes[i]))
	}
	l.Params = f.p.Lay(values)
	return l, nil
}

func launchKernel(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, s uintptr, params, extra unsafe.Pointer) uintptr {
	fn, ok := find[*function](f)
	if !ok || here.fault != nil {
		return gone(ok)
	}
	l, err := fn.bind([3]uint32{gx, gy, gz}, [3]uint32{bx, by, bz}, shared, params)
	if err != nil {
		return said(invalidValue, "%v", err)
	}
	return execute(&l)
}

func execute(l *launch) uintptr {
	l.f.ran()
	stats, err := ptx.Run(l.Launch)
	here.Instructions += stats.Instructions
	if err != nil {
		return failed(err)
	}
	return success
}

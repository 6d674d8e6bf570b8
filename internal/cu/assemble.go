package cu

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// linkCalls compile PTX to code that can be kept (a cubin), on any thread.
type linkCalls struct {
	Create   func(n uint32, keys *int32, values *uintptr, state *uintptr) Result                                                   `sym:"cuLinkCreate_v2"`
	Add      func(state uintptr, kind int32, data unsafe.Pointer, n uintptr, name *byte, k uint32, keys *int32, v *uintptr) Result `sym:"cuLinkAddData_v2"`
	Complete func(state uintptr, code *uintptr, n *uintptr) Result                                                                 `sym:"cuLinkComplete"`
	Destroy  func(state uintptr) Result                                                                                            `sym:"cuLinkDestroy"`
}

const inputPTX = 1 // CU_JIT_INPUT_PTX

// Assembler compiles PTX for one card. It is safe for concurrent use: that is its purpose.
type Assembler struct {
	c *Context
	l linkCalls
}

// Assembler is the driver's compiler for this card.
func (c *Context) Assembler() (*Assembler, error) {
	a := &Assembler{c: c}
	return a, c.driver.bind(&a.l)
}

// linkOptions are read by the driver until the link is destroyed, so they come from a pool: memory
// there never moves, as a stack may.
type linkOptions struct {
	keys   [2]int32
	values [2]uintptr
	log    [8192]byte
}

var linkPool = sync.Pool{New: func() any { return new(linkOptions) }}

// Assemble compiles PTX to code for the card. It must not run inside Do: it takes a thread of its
// own.
func (a *Assembler) Assemble(name string, ptx []byte) (code []byte, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := a.c.check("cuCtxSetCurrent", a.c.c.CtxSetCurrent(a.c.primary)); err != nil {
		return nil, err
	}
	defer a.c.c.CtxSetCurrent(0)
	o := linkPool.Get().(*linkOptions)
	defer linkPool.Put(o)
	*o = linkOptions{keys: [2]int32{jitErrorLog, jitErrorLogSize}}
	o.values = [2]uintptr{uintptr(unsafe.Pointer(&o.log[0])), uintptr(len(o.log))}
	var state, out, n uintptr
	if err := a.c.check("cuLinkCreate", a.l.Create(2, &o.keys[0], &o.values[0], &state)); err != nil {
		return nil, err
	}
	defer func() { // which frees the code too
		if failed := a.c.check("cuLinkDestroy", a.l.Destroy(state)); err == nil && failed != nil {
			code, err = nil, failed
		}
	}()
	text, title := append(append([]byte(nil), ptx...), 0), append([]byte(name), 0)
	err = a.c.check("cuLinkAddData", a.l.Add(state, inputPTX, unsafe.Pointer(&text[0]), uintptr(len(text)), &title[0], 0, nil, nil))
	if err == nil {
		err = a.c.check("cuLinkComplete", a.l.Complete(state, &out, &n))
	}
	runtime.KeepAlive(text)
	runtime.KeepAlive(title)
	if err != nil {
		log, _, _ := bytes.Cut(o.log[:], []byte{0})
		return nil, fmt.Errorf("compile kernel %s: %w %s", name, err, bytes.TrimSpace(log))
	}
	if out == 0 || n == 0 {
		return nil, fmt.Errorf("compile kernel %s: the driver gave no code", name)
	}
	return bytes.Clone(unsafe.Slice(*(**byte)(unsafe.Pointer(&out)), n)), nil
}

// driverFile names the driver's build on Linux.
const driverFile = "/proc/driver/nvidia/version"

// Build tells one build of the driver from another, as far as the machine says: two of them may
// compile the same PTX to other code.
func (d *Driver) Build() string {
	major, minor, _ := d.Version()
	build := fmt.Sprintf("CUDA %d.%d", major, minor)
	if text, err := os.ReadFile(driverFile); err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		build += ", " + strings.Join(strings.Fields(first), " ")
	}
	return build
}

// Package ptx executes kernels in NVIDIA's PTX on the host, so that tests without a GPU can check
// them; package cu/cutest uses it. It parses a module, decodes a kernel once, and runs launches
// warp by warp, with 32 lanes per instruction.
//
// An instruction with an unknown part in its name is an error. Every memory access is checked
// first. The result of a launch does not depend on the number of cores that run it, unless the
// kernel's own result depends on the order of blocks.
package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	lanes = 32
	full  = math.MaxUint32 // mask of all lanes of a warp
	none  = math.MinInt32  // no operand
)

// inst is a decoded instruction. An operand is an offset in bytes into the warp's registers; a
// constant is the complement of an offset into the program's constants. Predicates are numbered.
// Until slots are assigned, operands are numbers of virtual registers.
type inst struct {
	f          func(w *warp, in *inst)
	d, a, b, c int32
	outs, ins  []int32
	pd, pa, pb int32 // predicates: written, read, read
	guard      int32 // predicate, or none
	target     int32
	line       int32
	size       int32 // bytes per element of a memory access
	unless     bool  // the guard is negated
	nota, notb bool  // pa, pb are negated
	narrow     bool  // the address is 32 bits wide
	jumps      bool  // a branch, a return from a call or an exit: it may end a basic block
	moves      bool  // d is a copy of a
	sync       bool  // all live lanes of the warp must arrive together
	wide       uint8 // bytes per lane of d; 0: it has no d, or applies the mask itself
	space      space
	imm, imm2  int64
	op         string
}

// space is a state space. Addresses in shared and local memory are offsets. The generic space
// contains all spaces, each in its window.
type space uint8

const (
	generic space = iota
	global
	shared
	local
	param
)

// Windows of the generic space.
const (
	sharedWindow = 1 << 60
	localWindow  = 1 << 61
	windowBytes  = 1 << 32
	// address of the beginning of a block's shared memory
	sharedBase = 1024
)

// Program is a decoded kernel.
type Program struct {
	Name        string
	params      []variable // align holds their offsets
	code        []inst
	consts      []uint64
	frame       int // bytes of registers per warp
	predicates  int
	specials    []special
	staticBytes int  // shared memory that the kernel declares
	localBytes  int  // local memory per thread
	maxThreads  int  // largest block, by .maxntid; 0: no limit
	async       bool // the copy engine or products of a warpgroup access shared memory
}

// special is a register with a value that the hardware sets, like %tid.x.
type special struct {
	name string
	slot int32
}

// Params returns the sizes of the kernel's parameters in bytes.
func (p *Program) Params() []int {
	sizes := make([]int, len(p.params))
	for i, v := range p.params {
		sizes[i] = v.bytes
	}
	return sizes
}

// Static returns the bytes of shared memory that the kernel declares.
func (p *Program) Static() int { return p.staticBytes }

// Local returns the bytes of local memory per thread.
func (p *Program) Local() int { return p.localBytes }

// Threads returns the largest number of threads of a block, 0 if the kernel does not limit it.
func (p *Program) Threads() int { return p.maxThreads }

// class is a class of registers.
type class uint8

const (
	predicate class = iota
	word            // 32 bits; 16-bit and 8-bit values are in the low bits
	double          // 64 bits
)

func classOf(kind string) (class, bool) {
	switch {
	case kind == ".pred":
		return predicate, true
	case typeBytes[kind] == 8:
		return double, true
	case typeBytes[kind] > 0:
		return word, true
	}
	return 0, false
}

// place is the memory of a variable.
type place struct {
	space space
	at    int
}

// compiler decodes a kernel. Functions that it calls are inlined.
type compiler struct {
	m        *Module
	p        *Program
	f        *function
	prefix   string // prefix of names in the function that is being decoded
	ranges   map[string]class
	regs     map[string]int32
	classes  []class
	pinned   []int32
	places   map[string]place
	constant map[[2]uint64]int32
	labels   map[string]int32
	jumps    []jump
	depth    int
	serial   int
	first    int // line of the function's first statement
	line     int
	end      string // of an inlined function: the label at its end
}

type jump struct {
	at    int
	label string
}

// Compile decodes a kernel of the module.
func (m *Module) Compile(kernel string) (*Program, error) {
	f := m.functions[kernel]
	if f == nil {
		return nil, fmt.Errorf("no kernel %s", kernel)
	}
	c := &compiler{m: m, f: f, p: &Program{Name: kernel, predicates: 2}, ranges: map[string]class{}, regs: map[string]int32{},
		places: map[string]place{}, constant: map[[2]uint64]int32{}, labels: map[string]int32{}, first: f.line}
	c.p.maxThreads = f.threads[0] * max(f.threads[1], 1) * max(f.threads[2], 1)
	at := 0
	for _, v := range f.params {
		at = up(at, v.align)
		c.places[v.name] = place{param, at}
		c.p.params = append(c.p.params, variable{name: v.name, bytes: v.bytes, align: at})
		at += v.bytes
	}
	if err := c.shares(f); err != nil {
		return nil, err
	}
	if err := c.body(f); err != nil {
		return nil, fmt.Errorf("kernel %s +%d: %w", kernel, c.line-c.first, err)
	}
	c.emit(inst{f: leave, d: none, a: none, b: none, c: none, guard: none, target: -1, jumps: true, op: "exit"})
	for _, j := range c.jumps {
		to, ok := c.labels[j.label]
		if !ok {
			return nil, fmt.Errorf("kernel %s: no label %s", kernel, j.label)
		}
		c.p.code[j.at].target = to
	}
	c.fold()
	if err := c.products(); err != nil {
		return nil, fmt.Errorf("kernel %s %w", kernel, err)
	}
	c.place()
	return c.p, nil
}

func up(n, to int) int { return (n + to - 1) / to * to }

// shares assigns offsets to the module's shared variables that the kernel or its functions use.
// Dynamic shared memory comes last.
func (c *compiler) shares(f *function) error {
	named := map[string]bool{}
	seen := map[string]bool{}
	var walk func(f *function)
	var each func(args []operand)
	each = func(args []operand) {
		for _, o := range args {
			named[o.name] = true
			if called := c.m.functions[o.name]; called != nil && !seen[o.name] {
				seen[o.name] = true
				walk(called)
			}
			each(o.list)
		}
	}
	walk = func(f *function) {
		for i := range f.body {
			if d := f.body[i].declare; d != nil && d.space == ".shared" {
				c.p.staticBytes = up(c.p.staticBytes, d.align)
				c.places[d.name] = place{shared, sharedBase + c.p.staticBytes}
				c.p.staticBytes += d.bytes
			}
			each(f.body[i].args)
		}
	}
	walk(f)
	align := 1
	for _, v := range c.m.shared {
		if !named[v.name] {
			continue
		}
		if v.outside {
			align = max(align, v.align)
			continue
		}
		c.p.staticBytes = up(c.p.staticBytes, v.align)
		c.places[v.name] = place{shared, sharedBase + c.p.staticBytes}
		c.p.staticBytes += v.bytes
	}
	for _, v := range c.m.shared {
		if v.outside && named[v.name] {
			c.p.staticBytes = up(c.p.staticBytes, align)
			c.places[v.name] = place{shared, sharedBase + c.p.staticBytes}
		}
	}
	return nil
}

func (c *compiler) body(f *function) error {
	for i := range f.body {
		s := &f.body[i]
		c.line = s.line
		switch {
		case s.declare != nil:
			if err := c.declare(s.declare); err != nil {
				return err
			}
		case s.label != "":
			c.labels[c.prefix+s.label] = int32(len(c.p.code))
		default:
			if err := c.instruction(s); err != nil {
				return fmt.Errorf("%s: %w", s.op, err)
			}
		}
	}
	return nil
}

func (c *compiler) declare(d *declaration) error {
	switch d.space {
	case ".reg":
		k, ok := classOf(d.kind)
		if !ok {
			return fmt.Errorf("registers of type %s", d.kind)
		}
		if d.count > 0 {
			c.ranges[c.prefix+d.name] = k
		} else {
			c.register(c.prefix+d.name, k)
		}
	case ".local", ".param":
		if _, ok := c.places[c.prefix+d.name]; ok && d.space == ".local" {
			return fmt.Errorf("%s is declared twice", d.name)
		}
		c.p.localBytes = up(c.p.localBytes, max(d.align, 1))
		c.places[c.prefix+d.name] = place{local, c.p.localBytes}
		c.p.localBytes += d.bytes
	}
	return nil
}

func (c *compiler) register(name string, k class) int32 {
	var r int32
	if k == predicate {
		r = int32(c.p.predicates)
		c.p.predicates++
	} else {
		r = int32(len(c.classes))
		c.classes = append(c.classes, k)
	}
	c.regs[name] = r<<2 | int32(k)
	return r<<2 | int32(k)
}

// reg returns a register by its name.
func (c *compiler) reg(name string) (r int32, k class, ok bool) {
	id, ok := c.regs[c.prefix+name]
	if !ok {
		k, known := c.ranges[c.prefix+strings.TrimRight(name, "0123456789")]
		if !known {
			return 0, 0, false
		}
		id = c.register(c.prefix+name, k)
	}
	return id >> 2, class(id & 3), true
}

func (c *compiler) emit(in inst) *inst {
	c.p.code = append(c.p.code, in)
	last := &c.p.code[len(c.p.code)-1]
	last.line = int32(c.line - c.first)
	return last
}

// instruction decodes an instruction: its first word selects the family, which decodes the rest.
func (c *compiler) instruction(s *statement) error {
	words := strings.Split(s.op, ".")
	in := inst{d: none, a: none, b: none, c: none, guard: none, pd: none, pa: none, pb: none, target: -1, op: s.op}
	if s.guard != "" {
		r, k, ok := c.reg(s.guard)
		if !ok || k != predicate {
			return fmt.Errorf("%s is no predicate", s.guard)
		}
		in.guard, in.unless = r, s.unless
	}
	if words[0] == "call" {
		return c.call(s)
	}
	build, ok := families[words[0]]
	if !ok {
		return fmt.Errorf("this instruction is not known")
	}
	x := &decoder{c: c, s: s, words: words[1:], in: &in}
	if err := build(x); err != nil {
		return err
	}
	if len(x.words) > 0 {
		return fmt.Errorf(".%s is not known here", x.words[0])
	}
	if in.f != nil {
		c.emit(in)
	}
	return nil
}

// call inlines the called function: its parameters become variables of the caller.
func (c *compiler) call(s *statement) error {
	if s.op != "call.uni" || s.guard != "" {
		return fmt.Errorf("a call that is not uniform")
	}
	args := s.args
	var returned, given []operand
	if len(args) > 0 && args[0].kind == vector {
		returned, args = args[0].list, args[1:]
	}
	if len(args) == 0 || args[0].kind != named {
		return fmt.Errorf("no function")
	}
	if len(args) > 1 {
		given = args[1].list
	}
	f := c.m.functions[args[0].name]
	if f == nil {
		return fmt.Errorf("no function %s", args[0].name)
	}
	if len(given) != len(f.params) || len(returned) != len(f.returns) {
		return fmt.Errorf("%s has %d parameters and %d results, %d and %d are given", f.name, len(f.params), len(f.returns), len(given), len(returned))
	}
	if c.depth++; c.depth > 16 {
		return fmt.Errorf("calls are too deep")
	}
	c.serial++
	prefix := "call" + strconv.Itoa(c.serial) + "."
	for i, v := range append(append([]variable(nil), f.params...), f.returns...) {
		o := append(append([]operand(nil), given...), returned...)[i]
		at, ok := c.places[c.prefix+o.name]
		if !ok {
			return fmt.Errorf("no variable %s", o.name)
		}
		c.places[prefix+v.name] = at
	}
	for i := range f.body {
		if d := f.body[i].declare; d != nil && d.space == ".shared" {
			c.places[prefix+d.name] = c.places[d.name]
		}
	}
	before, end, line := c.prefix, c.end, c.line
	c.prefix, c.end = prefix, prefix+"end"
	err := c.body(f)
	c.labels[c.end] = int32(len(c.p.code))
	c.prefix, c.end, c.line = before, end, line
	c.depth--
	return err
}

// constantOf returns the operand of a constant with this number of bytes.
func (c *compiler) constantOf(bits uint64, bytes int) int32 {
	if bytes == 2 {
		bits &= 0xffff
	}
	if bytes <= 4 {
		bits = bits&math.MaxUint32 | bits<<32
		bytes = 4
	}
	key := [2]uint64{bits, uint64(bytes)}
	o, ok := c.constant[key]
	if !ok {
		o = ^int32(8 * len(c.p.consts))
		for range lanes * bytes / 8 {
			c.p.consts = append(c.p.consts, bits)
		}
		c.constant[key] = o
	}
	return o
}

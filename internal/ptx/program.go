// Package ptx executes kernels in NVIDIA's PTX on the host, so that what a card would do can be
// judged without one: it parses a module, decodes a kernel once, and runs launches warp by warp, 32
// lanes per instruction.
//
// What a reader could break: an instruction that is not known in every letter of its spelling is an
// error, never a guess; no access reaches memory that is not judged first; and a launch's outcome
// does not depend on how many cores run it, as long as the kernel's own does not.
package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	lanes = 32
	full  = math.MaxUint32 // all lanes of a warp
	none  = math.MinInt32  // no operand
)

// inst is a decoded instruction. Operands are offsets in bytes into the warp's registers, or of
// constants the complement of an offset into the program's; those of predicates are numbers of
// masks. Until slots are given out they are numbers of virtual registers.
type inst struct {
	f          func(w *warp, in *inst)
	d, a, b, c int32
	outs, ins  []int32
	pd, pa, pb int32 // predicates: written, read
	guard      int32 // or none
	target     int32
	line       int32
	size       int32 // bytes per element of a memory access
	unless     bool  // the guard's complement
	nota, notb bool  // of pa, pb
	narrow     bool  // the address is 32 bits wide
	jumps      bool  // a branch, a call's return or an exit: it may end a basic block
	moves      bool  // d gets what a is
	sync       bool  // all lanes of the warp that live must arrive together
	wide       uint8 // bytes of d's lanes; 0: it writes none, or heeds the mask itself
	space      space
	imm, imm2  int64
	op         string
}

// space is a state space. Addresses of shared and local memory are offsets; the generic space has
// all of them, each in its window.
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
	// a block's shared memory does not begin at zero
	sharedBase = 1024
)

// Program is one kernel, decoded.
type Program struct {
	Name        string
	params      []variable // with their offsets in align
	code        []inst
	consts      []uint64
	frame       int // bytes of registers per warp
	predicates  int
	specials    []special
	staticBytes int  // shared memory that the kernel declares
	localBytes  int  // per thread
	maxThreads  int  // by .maxntid; 0: any
	async       bool // the copy engine or a warpgroup's products touch shared memory
}

// special is a register that a thread finds set, like %tid.x.
type special struct {
	name string
	slot int32
}

// Params is how many parameters the kernel takes, and how many bytes each has.
func (p *Program) Params() []int {
	sizes := make([]int, len(p.params))
	for i, v := range p.params {
		sizes[i] = v.bytes
	}
	return sizes
}

// Static is the shared memory in bytes that the kernel declares itself, Local what each thread has
// of its own, and Threads the most that a block may have (0: any number).
func (p *Program) Static() int { return p.staticBytes }

// Local is the memory in bytes that each thread has of its own.
func (p *Program) Local() int { return p.localBytes }

// Threads is the most that a block may have, 0 where the kernel does not say.
func (p *Program) Threads() int { return p.maxThreads }

// class is a kind of register.
type class uint8

const (
	predicate class = iota
	word            // 32 bits; 16 and 8 lie in their low ones
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

// place is what a name stands for beside a register: memory.
type place struct {
	space space
	at    int
}

// compiler decodes one kernel, with the functions that it calls in their callers' places.
type compiler struct {
	m        *Module
	p        *Program
	f        *function
	prefix   string // of the names of the function that is being decoded
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
	first    int // line
	line     int
	end      string // of an inlined function: the label to return to
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

// shares gives the module's shared variables that the kernel, or a function, names their places,
// those of the launch last.
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

// reg finds a register by name.
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

// instruction decodes one: its first word names the family, which reads the rest.
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
	x := &building{c: c, s: s, words: words[1:], in: &in}
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

// call puts the called function's body here: its parameters are the caller's own variables.
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

// constantOf is the operand of a constant of so many bytes.
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

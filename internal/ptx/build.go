package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// families holds a builder for the first word of each instruction's name. A builder consumes the
// other words; a word that is left over is an error.
var families map[string]func(x *decoder) error

func init() {
	families = map[string]func(x *decoder) error{}
	for _, all := range []map[string]func(x *decoder) error{integers, bitwise, floats, comparisons, conversions, moves, accesses,
		copies, exchanges, barriers, mbarriers, matrices, warpgroups, control} {
		for name, f := range all {
			if families[name] != nil {
				panic("an instruction has two builders")
			}
			families[name] = f
		}
	}
}

// decoder is an instruction that is being decoded.
type decoder struct {
	c     *compiler
	s     *statement
	words []string // words of its name that are not consumed yet
	in    *inst
}

// has consumes the next word of the name if it equals word.
func (x *decoder) has(word string) bool {
	if len(x.words) > 0 && x.words[0] == word {
		x.words = x.words[1:]
		return true
	}
	return false
}

// any consumes the next word if it is one of words, and returns it or "".
func (x *decoder) any(words ...string) string {
	if len(x.words) > 0 && slices.Contains(words, x.words[0]) {
		w := x.words[0]
		x.words = x.words[1:]
		return w
	}
	return ""
}

// is consumes the rest of the name if it equals words.
func (x *decoder) is(words string) bool {
	if strings.Join(x.words, ".") == words {
		x.words = nil
		return true
	}
	return false
}

// typed consumes the last word, a type.
func (x *decoder) typed() string {
	if len(x.words) == 0 {
		return ""
	}
	w := x.words[len(x.words)-1]
	x.words = x.words[:len(x.words)-1]
	return w
}

func (x *decoder) unknown() error {
	return fmt.Errorf("this instruction is not known")
}

// count returns an error unless there are n operands.
func (x *decoder) count(n int) error {
	if len(x.s.args) != n {
		return fmt.Errorf("%d operands, %d are wanted", len(x.s.args), n)
	}
	return nil
}

// to returns the register that operand i names, which must have this number of bytes.
func (x *decoder) to(i, bytes int) (int32, error) { return x.written(x.s.args[i], bytes) }

func (x *decoder) written(o operand, bytes int) (int32, error) {
	r, k, ok := x.c.reg(o.name)
	if o.kind != named || !ok || k != classBytes(bytes) {
		return none, fmt.Errorf("%q is no register of %d bytes", o.name, bytes)
	}
	return r, nil
}

func classBytes(n int) class {
	if n == 8 {
		return double
	}
	return word
}

// from returns the source of operand i: a register, a constant or a variable's address.
func (x *decoder) from(i, bytes int) (int32, error) { return x.read(x.s.args[i], bytes) }

func (x *decoder) read(o operand, bytes int) (int32, error) {
	switch o.kind {
	case number:
		return x.c.constantOf(o.bits, bytes), nil
	case named:
		if strings.HasPrefix(o.name, "%") {
			if s, ok := x.c.special(o.name); ok {
				if bytes != 4 {
					return none, fmt.Errorf("%s has 32 bits", o.name)
				}
				return s, nil
			}
		}
		if r, k, ok := x.c.reg(o.name); ok {
			if k != classBytes(bytes) {
				return none, fmt.Errorf("%s has not %d bytes", o.name, bytes)
			}
			return r, nil
		}
		if at, ok := x.c.find(o.name); ok {
			return x.c.constantOf(uint64(at.at), bytes), nil
		}
	}
	return none, fmt.Errorf("%q is no operand that can be read", o.name)
}

// find returns the memory of a variable.
func (c *compiler) find(name string) (place, bool) {
	at, ok := c.places[c.prefix+name]
	if !ok {
		at, ok = c.places[name]
	}
	return at, ok
}

var specials = []string{"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z",
	"%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%warpid"}

func (c *compiler) special(name string) (int32, bool) {
	if !slices.Contains(specials, name) {
		return 0, false
	}
	id, ok := c.regs[name]
	if !ok {
		id = c.register(name, word)
		c.pinned = append(c.pinned, id>>2)
		c.p.specials = append(c.p.specials, special{name, id >> 2})
	}
	return id >> 2, true
}

// pred returns the predicate of an operand. The number 0 is false.
func (x *decoder) pred(o operand) (r int32, not bool, err error) {
	if o.kind == number {
		return int32(min(o.bits, 1)), false, nil
	}
	r, k, ok := x.c.reg(o.name)
	if o.kind != named || !ok || k != predicate {
		return none, false, fmt.Errorf("%q is no predicate", o.name)
	}
	return r, o.not, nil
}

// simple decodes an instruction with a result of dst bytes and operands of the given widths.
func (x *decoder) simple(f func(w *warp, in *inst), dst int, widths ...int) error {
	err := x.count(1 + len(widths))
	if err != nil {
		return err
	}
	if x.in.d, err = x.to(0, dst); err != nil {
		return err
	}
	for i, n := range widths {
		o, err := x.from(i+1, n)
		if err != nil {
			return err
		}
		*[]*int32{&x.in.a, &x.in.b, &x.in.c}[i] = o
	}
	x.in.f, x.in.wide = f, uint8(max(dst, 4))
	return nil
}

// group returns the operands of a vector, or the single operand.
func group(o operand) []operand {
	if o.kind == vector {
		return o.list
	}
	return []operand{o}
}

func (x *decoder) writtenAll(o operand, n, bytes int) ([]int32, error) {
	list := group(o)
	if len(list) != n {
		return nil, fmt.Errorf("%d registers, %d are wanted", len(list), n)
	}
	var all []int32
	for _, e := range list {
		if e.kind == nothing {
			all = append(all, none)
			continue
		}
		r, err := x.written(e, bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (x *decoder) readAll(o operand, n, bytes int) ([]int32, error) {
	list := group(o)
	if len(list) != n {
		return nil, fmt.Errorf("%d operands, %d are wanted", len(list), n)
	}
	var all []int32
	for _, e := range list {
		r, err := x.read(e, bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// address decodes operand i as an address: a register and an offset, or a variable.
func (x *decoder) address(i int, sp space) error {
	o := x.s.args[i]
	if o.kind != memory {
		return fmt.Errorf("no address")
	}
	x.in.space, x.in.imm = sp, int64(o.bits)
	r, narrow, at, err := x.base(o, &sp)
	if err != nil {
		return err
	}
	x.in.a, x.in.narrow, x.in.space = r, narrow, sp
	x.in.imm += at
	return nil
}

// base returns the base of an address: a register, or a variable's address, which determines the
// space.
func (x *decoder) base(o operand, sp *space) (r int32, narrow bool, at int64, err error) {
	if o.name == "" {
		return none, false, 0, nil
	}
	if r, k, ok := x.c.reg(o.name); ok {
		if k == predicate {
			return none, false, 0, fmt.Errorf("%s is no address", o.name)
		}
		return r, k == word, 0, nil
	}
	v, ok := x.c.find(o.name)
	if !ok {
		return none, false, 0, fmt.Errorf("no variable %s", o.name)
	}
	// an inlined function's parameters are local variables of its caller
	if *sp != v.space && !(*sp == param && v.space == local) {
		return none, false, 0, fmt.Errorf("%s is not in that space", o.name)
	}
	*sp = v.space
	return none, false, int64(v.at), nil
}

package ir

// simplify returns a value that already exists, or that is made of fewer or cheaper operations, and
// whether it found one. It changes no bit of a result: float32 operations are left alone unless all
// operands are constants.
func (b *Builder) simplify(o Op, args []int32) (int32, bool) {
	var words [3]uint32
	constant := true
	for i, a := range args {
		w, ok := b.IsConst(a)
		words[i] = w
		constant = constant && ok
	}
	if constant {
		return b.Const(Apply(o, words[0], words[1], words[2])), true
	}
	switch o {
	case Add, Or, Xor, Sub, Shl, Shr, And, Mul:
		return b.simplifyPair(o, args[0], args[1])
	case Min, Max:
		if args[0] == args[1] {
			return args[0], true
		}
	case Eq, Le:
		if args[0] == args[1] {
			return b.Const(1), true
		}
		if o == Eq {
			return b.simplifyEq(args[0], args[1])
		}
	case Lt:
		if args[0] == args[1] {
			return b.Const(0), true
		}
	case Select:
		return b.simplifySelect(args[0], args[1], args[2])
	}
	return 0, false
}

// simplifyEq turns a comparison of a bool with a constant into the bool or its negation.
func (b *Builder) simplifyEq(x, y int32) (int32, bool) {
	if b.f.Values[x].Op == Const {
		x, y = y, x
	}
	switch {
	case !b.bools[x]:
	case b.is(y, 1):
		return x, true
	case b.is(y, 0):
		return b.Not(x), true
	}
	return 0, false
}

// is reports whether a value is that constant.
func (b *Builder) is(v int32, word uint32) bool {
	w, ok := b.IsConst(v)
	return ok && w == word
}

// negated returns the bool whose negation v is, and whether there is one.
func (b *Builder) negated(v int32) (int32, bool) {
	n := b.f.Values[v]
	switch {
	case n.Op != Xor || !b.bools[v]:
		return 0, false
	case b.is(n.A, 1):
		return n.B, true
	case b.is(n.B, 1):
		return n.A, true
	}
	return 0, false
}

// opposite reports whether one of two bools is the negation of the other.
func (b *Builder) opposite(x, y int32) bool {
	nx, okx := b.negated(x)
	ny, oky := b.negated(y)
	return okx && nx == y || oky && ny == x
}

// simplifyPair is simplify for operations on two integers.
func (b *Builder) simplifyPair(o Op, x, y int32) (int32, bool) {
	if specs[o].Commute && b.f.Values[x].Op == Const {
		x, y = y, x // a constant is the second operand
	}
	w, constant := b.IsConst(y)
	switch {
	case constant && w == 0 && (o == And || o == Mul):
		return y, true
	case constant && w == 0:
		return x, true // Add, Or, Xor, Sub, Shl, Shr
	case constant && w == 1 && o == Mul:
		return x, true
	case constant && w == 1 && o == And && b.bools[x]:
		return x, true
	case constant && w == 1 && o == Or && b.bools[x]:
		return y, true
	case constant && w == 1 && o == Xor && b.bools[x]:
		return b.negated(x)
	case x == y && (o == And || o == Or):
		return x, true
	case x == y && (o == Xor || o == Sub):
		return b.Const(0), true
	case o == And && b.opposite(x, y):
		return b.Const(0), true
	case (o == Or || o == Xor) && b.opposite(x, y):
		return b.Const(1), true
	}
	return 0, false
}

// simplifySelect is simplify for Select.
func (b *Builder) simplifySelect(c, yes, no int32) (int32, bool) {
	if w, ok := b.IsConst(c); ok {
		if w != 0 {
			return yes, true
		}
		return no, true
	}
	if inner, ok := b.negated(c); ok {
		return b.Select(inner, no, yes), true
	}
	if yes == no {
		return yes, true
	}
	if v := b.f.Values[yes]; v.Op == Select && v.A == c {
		return b.Select(c, v.B, no), true
	}
	if v := b.f.Values[no]; v.Op == Select && v.A == c {
		return b.Select(c, yes, v.C), true
	}
	if !b.bools[yes] || !b.bools[no] {
		return 0, false
	}
	switch {
	case b.is(yes, 1) || yes == c:
		return b.Do(Or, c, no), true
	case b.is(no, 0) || no == c:
		return b.Do(And, c, yes), true
	case b.is(yes, 0):
		return b.Do(And, b.Not(c), no), true
	case b.is(no, 1):
		return b.Do(Or, b.Not(c), yes), true
	}
	return 0, false
}

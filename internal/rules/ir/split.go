package ir

// Bind replaces the words of a source by constants. It returns a function that no longer reads the
// source. Words are indexed as the source's.
func (f *Func) Bind(s Source, words []uint32) *Func {
	b := NewBuilder(f.Name)
	moved := make([]int32, len(f.Values))
	for i := range f.Values {
		v := &f.Values[i]
		if v.Op == Input && f.Inputs[v.Imm].Source == s {
			moved[i] = b.Const(words[f.Inputs[v.Imm].Index])
			continue
		}
		moved[i] = b.copy(f, i, moved)
	}
	return b.Finish(at(f.Outputs, moved))
}

// copy writes value i of f, whose operands are moved.
func (b *Builder) copy(f *Func, i int, moved []int32) int32 {
	v := &f.Values[i]
	switch v.Op {
	case Const:
		return b.Const(v.Imm)
	case Input:
		return b.Input(f.Inputs[v.Imm])
	}
	return b.Do(v.Op, at(v.Operands(), moved)...)
}

func at(list, moved []int32) []int32 {
	out := make([]int32, len(list))
	for i, v := range list {
		out[i] = moved[v]
	}
	return out
}

// Split divides f into a function that computes what does not depend on the source `late`, and a
// function that computes the rest. The second reads the first one's outputs as words of Prepared,
// and otherwise words of `late` alone; constants are repeated. The second returns what f returns.
func (f *Func) Split(late Source) (early, rest *Func) {
	depends := f.Depends()
	isLate := func(i int32) bool { return depends[i]>>late&1 != 0 }
	first, second := NewBuilder(f.Name+".prepare"), NewBuilder(f.Name)
	inFirst, inSecond := make([]int32, len(f.Values)), make([]int32, len(f.Values))
	crossed := make([]bool, len(f.Values))
	var outputs []int32
	cross := func(i int32) {
		if isLate(i) || crossed[i] {
			return
		}
		crossed[i] = true
		if f.Values[i].Op == Const {
			inSecond[i] = second.Const(f.Values[i].Imm)
			return
		}
		inSecond[i] = second.Input(Word{Prepared, int32(len(outputs)), first.kind(inFirst[i])})
		outputs = append(outputs, inFirst[i])
	}
	for i := range f.Values {
		if !isLate(int32(i)) {
			inFirst[i] = first.copy(f, i, inFirst)
			continue
		}
		for _, a := range f.Values[i].Operands() {
			cross(a)
		}
		inSecond[i] = second.copy(f, i, inSecond)
	}
	for _, o := range f.Outputs {
		cross(o)
	}
	return first.Finish(outputs), second.Finish(at(f.Outputs, inSecond))
}

// kind returns Bool if a value is known to be 0 or 1, else Int32.
func (b *Builder) kind(v int32) Kind {
	if b.bools[v] {
		return Bool
	}
	return Int32
}

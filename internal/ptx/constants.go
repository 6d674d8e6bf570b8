package ptx

// fold replaces registers that hold one constant throughout by the constant, and removes the
// instructions that set them.
func (c *compiler) fold() {
	code := c.p.code
	writes := make([]int32, len(c.classes))
	for i := range code {
		code[i].writes(func(v int32) { writes[v]++ })
	}
	value := make([]int32, len(c.classes))
	for i := range value {
		value[i] = int32(i)
	}
	dropped := make([]bool, len(code))
	for i := range code {
		if in := &code[i]; in.moves && in.a < 0 && in.guard == none && writes[in.d] == 1 {
			value[in.d], dropped[i] = in.a, true
		}
	}
	at := make([]int32, len(code)+1) // index of an instruction after the removal
	kept := code[:0]
	for i := range code {
		at[i] = int32(len(kept))
		if dropped[i] {
			continue
		}
		in := code[i]
		for _, o := range [...]*int32{&in.a, &in.b, &in.c} {
			if *o >= 0 {
				*o = value[*o]
			}
		}
		for j, o := range in.ins {
			if o >= 0 {
				in.ins[j] = value[o]
			}
		}
		kept = append(kept, in)
	}
	at[len(code)] = int32(len(kept))
	for i := range kept {
		if kept[i].target >= 0 {
			kept[i].target = at[kept[i].target]
		}
	}
	c.p.code = kept
}

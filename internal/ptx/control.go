package ptx

// control holds branches, and instructions that are only hints.
var control = map[string]func(x *decoder) error{
	"bra": func(x *decoder) error {
		x.has("uni")
		if err := x.count(1); err != nil {
			return err
		}
		x.in.f, x.in.jumps = branch, true
		x.c.jumps = append(x.c.jumps, jump{len(x.c.p.code), x.c.prefix + x.s.args[0].name})
		return nil
	},
	"ret":  back,
	"exit": back,
	"griddepcontrol": func(x *decoder) error {
		// kernels run one at a time: the preceding kernel has ended
		if x.any("wait", "launch_dependents") == "" {
			return x.unknown()
		}
		return nil
	},
	"prefetch": func(x *decoder) error {
		if !x.is("global.L2") {
			return x.unknown()
		}
		x.in.f = pass
		return x.address(0, global)
	},
	"membar": func(x *decoder) error {
		if x.any("gl", "cta") == "" {
			return x.unknown()
		}
		return nil
	},
}

// back decodes ret. In an inlined function it jumps to the end of the function.
func back(x *decoder) error {
	x.has("uni")
	if x.c.end != "" && x.s.op != "exit" {
		x.in.f, x.in.jumps = branch, true
		x.c.jumps = append(x.c.jumps, jump{len(x.c.p.code), x.c.end})
		return nil
	}
	x.in.f, x.in.jumps = leave, true
	return nil
}

func pass(*warp, *inst) {}

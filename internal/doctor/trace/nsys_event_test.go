package trace

import (
	"testing"

	"haul/internal/doctor/nsys"
)

// Columns that a row of Nsight Systems lacks remain unknown.
func TestNsysEvents(t *testing.T) {
	k := nsysEvent(nsys.Row{Kind: nsys.Kernel, Name: "gemm", Start: 100, End: 350, Thread: 7, Correlation: 9, Device: 1, Stream: 13})
	if k.cat != CatKernel || k.phase != 'X' || !k.hasStart || !k.hasDur || k.start != 100 || k.dur != 250 || string(k.tid) != "7" || string(k.pid) != "0" {
		t.Errorf("%+v", k)
	}
	if a := k.args; a.blocks != -1 || a.total != -1 || a.grid != 0 || a.correlation != 9 || a.device != 1 || !a.hasDevice || a.stream != 13 {
		t.Errorf("%+v", a)
	}
	if k := nsysEvent(nsys.Row{Kind: nsys.Kernel, Blocks: 264}); k.args.grid != 264 {
		t.Errorf("%+v", k.args)
	}
	for pageable, want := range map[bool]direction{true: uploadPageable, false: upload} {
		c := nsysEvent(nsys.Row{Kind: nsys.Copy, Direction: "HtoD", HostPageable: pageable, Bytes: 1 << 40})
		if c.cat != CatCopy || directionOf(string(c.name)) != want || c.args.bytes != 1<<32-1 {
			t.Errorf("%s: %+v", c.name, c)
		}
	}
	if s := nsysEvent(nsys.Row{Kind: nsys.Set}); s.cat != catSet || string(s.name) != "Memset" {
		t.Errorf("%+v", s)
	}
	if c := nsysEvent(nsys.Row{Kind: nsys.Call, Name: "cudaMalloc"}); c.cat != catCall {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]category{"aten::add, op_id = 3": catOp, "aten::add": catOp, "my range": catNote} {
		if e := nsysEvent(nsys.Row{Kind: nsys.Range, Name: name}); e.cat != want {
			t.Errorf("%s: %d", name, e.cat)
		}
	}
}

package report

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"
	"weak"

	"haul/internal/doctor/trace"
)

// examples are the traces that come with the docs: two ranks of a job, and one of a busy CPU.
func examples(t *testing.T) []*Report {
	t.Helper()
	var list []*Report
	for _, path := range []string{"ranks/rank0.json.gz", "ranks/rank1.json.gz", "trace.json.gz"} {
		path = "../../../docs/examples/" + path
		tr, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Diagnose(tr)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// A job of many ranks is judged without their events: the same words and numbers come out, and
// nothing that is left points back at a list of events, which would keep it in memory.
func TestReleasedReports(t *testing.T) {
	written := func(list []*Report) (out []byte) {
		var b bytes.Buffer
		j := JoinRanks(list[:2])
		if err := j.WriteText(&b, Text{Breakdown: true}); err != nil {
			t.Fatal(err)
		}
		if err := list[0].WriteText(&b, Text{Breakdown: true}); err != nil {
			t.Fatal(err)
		}
		if err := Compare(list[0], list[1]).WriteText(&b); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		return append(b.Bytes(), data...)
	}
	whole := written(examples(t))
	list := examples(t)
	a := list[2].a
	works := weak.Make(a.GPU.At(0))
	var ops []weak.Pointer[trace.Op]
	var calls []weak.Pointer[trace.Call]
	for _, th := range a.Threads {
		if th.Ops.Len() > 0 {
			ops = append(ops, weak.Make(th.Ops.At(0)))
		}
		if th.Calls.Len() > 0 {
			calls = append(calls, weak.Make(th.Calls.At(0)))
		}
	}
	for _, r := range list {
		r.Release()
		r.Release() // a second time does nothing
	}
	runtime.GC()
	if works.Value() != nil {
		t.Error("GPU work is kept after Release")
	}
	for _, o := range ops {
		if o.Value() != nil {
			t.Error("a thread's operators are kept after Release")
		}
	}
	for _, c := range calls {
		if c.Value() != nil {
			t.Error("a thread's calls are kept after Release")
		}
	}
	if released := written(list); !bytes.Equal(whole, released) {
		t.Errorf("before Release:\n%s\nafter it:\n%s", whole, released)
	}
	defer func() {
		if recover() == nil {
			t.Error("a page was drawn without events")
		}
	}()
	_ = JoinRanks(list[:2]).WriteHTML(&bytes.Buffer{})
}

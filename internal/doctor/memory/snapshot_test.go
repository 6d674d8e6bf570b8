package memory

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"haul/internal/limits/limitstest"
)

// fields is a dictionary with its keys in order, as the tests write it.
type fields []any

// write appends a value as protocol 2 does: texts, whole numbers, booleans, lists and dictionaries.
func write(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(v))), v...)
	case int:
		return binary.LittleEndian.AppendUint64(append(b, 0x8a, 8), uint64(v))
	case bool:
		return append(b, map[bool]byte{true: 0x88, false: 0x89}[v])
	case []any:
		b = append(b, ']', '(')
		for _, x := range v {
			b = write(b, x)
		}
		return append(b, 'e')
	case fields:
		b = append(b, '}', '(')
		for _, x := range v {
			b = write(b, x)
		}
		return append(b, 'u')
	}
	panic("write: a type that no snapshot has")
}

func dump(v any) []byte { return append(write([]byte{0x80, 2}, v), '.') }

func frame(name, file string, line int) fields {
	return fields{"name", name, "filename", file, "line", line}
}

func event(action string, address, size int, frames ...any) fields {
	return fields{"action", action, "addr", address, "size", size, "stream", 0, "frames", []any(frames)}
}

// sample is a snapshot of a model of 100 MiB in its forward pass: what PyTorch writes, made small.
func sample() fields {
	return fields{
		"segments", []any{
			fields{"device", 0, "address", 1 << 30, "total_size", 100 * mebi, "blocks", []any{
				fields{"address", 1 << 30, "size", 90 * mebi, "state", "active_allocated"},
				fields{"address", 1<<30 + 90*mebi, "size", 10 * mebi, "state", "inactive"},
			}},
			fields{"device", 0, "address", 2 << 30, "total_size", 20 * mebi, "is_expandable", true, "blocks", []any{
				fields{"address", 2 << 30, "size", 20 * mebi, "state", "active_pending_free"},
			}},
		},
		"device_traces", []any{[]any{
			event("segment_alloc", 2<<30, 20*mebi),
			event("alloc", 2<<30, 20*mebi, frame("torch::unwind::unwind()", "??", 0), frame("forward", "/site-packages/torch/nn/modules/module.py", 9),
				frame("forward", `C:\work\model.py`, 22), frame("main", "train.py", 3)),
			event("free_requested", 2<<30, 20*mebi),
		}, []any{}},
	}
}

func TestRead(t *testing.T) {
	s, err := Read(dump(sample()))
	if err != nil {
		t.Fatal(err)
	}
	rep := Analyse(s)[0]
	if rep.Peak != 110 || rep.Reserved != 120 || rep.Start != 90 || rep.PeakEvent != 1 || rep.Events != 3 {
		t.Errorf("%+v", rep)
	}
	if want := (Holding{"model.py:22 forward", 20, 1}); len(rep.Places) != 1 || rep.Places[0] != want {
		t.Errorf("places: %v, want %v", rep.Places, want)
	}
	if len(s.Devices) != 1 {
		t.Errorf("%d devices, want the one that holds memory", len(s.Devices))
	}
}

// Before PyTorch 2.1 blocks had no address: they are contiguous.
func TestReadBlocksWithoutAddresses(t *testing.T) {
	v := sample()
	blocks := v[1].([]any)[0].(fields)
	blocks[7] = []any{fields{"size", 10 * mebi, "state", "inactive"}, fields{"size", 90 * mebi, "state", "active_pending_free"}}
	s, err := Read(dump(v))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Devices[0].Blocks[0], (Block{1<<30 + 10*mebi, 90 * mebi}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSites(t *testing.T) {
	for _, c := range []struct {
		frames []any
		want   Site
	}{
		{[]any{frame("x", "/lib/python3.12/functools.py", 3)}, Site{Place: "functools.py:3 x"}},
		{[]any{frame("torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", "??", 0), frame("torch::autograd::Engine::thread_main(x)", "??", 0)},
			Site{Place: "autograd MmBackward0", Phase: Backward}},
		{[]any{frame("step", "/a/optim.py", 7), frame("wrapper", "/site-packages/torch/optim/optimizer.py", 493)}, Site{Place: "optim.py:7 step", Phase: Optimizer}},
		{[]any{frame("at::cuda::getCUDABlasLtWorkspace()", "??", 0), frame("f", "a.py", 1)}, Site{Place: "cuBLAS workspace", Workspace: true}},
		{[]any{frame("at::native::log_softmax(x)", "??", 0), frame("f", "<ipython-input-3>", 1)}, Site{Place: "<ipython-input-3>:1 f", Loss: true}},
		{[]any{frame("f", "??", 0)}, Site{Place: noStack}},
		{[]any{frame("a\x1b[31m", "b.py", 2)}, Site{Place: "b.py:2 a [31m"}},
	} {
		s, err := Read(dump(fields{"segments", []any{}, "device_traces", []any{[]any{event("alloc", 1, 1, c.frames...)}}}))
		if err != nil {
			t.Fatal(err)
		}
		if got := *s.Devices[0].Events[0].Site; got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		v          any
	}{
		{"a list", "no memory snapshot", []any{}},
		{"other keys", "no memory snapshot", fields{"model", 1}},
		{"nothing in it", "_record_memory_history", fields{"segments", []any{}, "device_traces", []any{[]any{}}}},
		{"a segment without a size", "damaged", fields{"segments", []any{fields{"device", 0, "address", 1, "blocks", []any{}}}, "device_traces", []any{}}},
		{"a negative size", "damaged", fields{"segments", []any{fields{"device", 0, "address", 1, "total_size", -1, "blocks", []any{}}}, "device_traces", []any{}}},
		{"a block larger than its segment", "damaged", fields{"segments", []any{fields{"device", 0, "address", 1, "total_size", 1, "blocks", []any{fields{"size", 2}}}}, "device_traces", []any{}}},
		{"an event without an address", "damaged", fields{"segments", []any{}, "device_traces", []any{[]any{fields{"action", "alloc", "size", 1}}}}},
	} {
		if _, err := Read(dump(c.v)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Read(dump([]any{})); !errors.Is(err, ErrOther) {
		t.Errorf("%v", err)
	}
	if _, err := Read(dump(sample())[:200]); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a file cut short: %v", err)
	}
}

// No file makes the reader or the analysis panic.
func FuzzSnapshot(f *testing.F) {
	f.Add(dump(sample()))
	f.Add(dump(fields{"segments", []any{}, "device_traces", []any{[]any{event("oom", 0, 1), event("segment_free", 5, 1<<62), event("segment_free", 6, 1<<62), event("free_completed", 9, 3)}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			s, err := Read(data)
			if err != nil {
				return
			}
			for _, rep := range Analyse(s) {
				rep.Write(func(string, ...any) {})
				rep.Picture()
				Compare(rep, rep).Write(func(string, ...any) {})
			}
		}, data)
	})
}

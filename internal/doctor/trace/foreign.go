package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"haul/internal/doctor/memory"
	"haul/internal/doctor/nsys"
	"haul/internal/doctor/xplane"
	"haul/internal/limits"
)

// Files of other profilers are converted to events of a Chrome trace and use the same builder, so
// that rules and figures mean the same for all formats.

// looksLikeXplane reports whether a file starts like an XSpace message: with a plane whose first
// field is its number or name.
func looksLikeXplane(head []byte) bool {
	return len(head) > 4 && head[0] == 0x0a && head[1] != '\n' && head[1] != ' ' && head[1] != '{' && head[1] != '['
}

// readXplane reads the profile of JAX.
func readXplane(r io.Reader, left *Budget) (*Trace, error) {
	b := newBuilder(left)
	type line struct{ plane, line string }
	named := map[line]bool{}
	var first int64 = math.MaxInt64
	var events []event
	err := xplane.Read(r, func(x xplane.Event) error {
		if int64(len(events)) >= left.events {
			return left.limits.Beyond(limits.Events)
		}
		e := event{phase: 'X', cat: catBare, name: []byte(x.Name), hasStart: true, hasDur: true}
		e.pid = strconv.AppendInt(nil, int64(x.PlaneID), 10)
		e.tid = strconv.AppendInt(nil, x.LineID, 10)
		e.start, e.dur = x.StartPS, x.DurationPS
		e.args.blocks, e.args.total = -1, -1
		e.args.correlation = count([]byte(x.Stats["correlation_id"]))
		e.args.details([]byte(x.Stats["kernel_details"]))
		e.args.details([]byte(x.Stats["memcpy_details"]))
		key := line{plane: string(e.pid), line: string(e.tid)}
		if !named[key] {
			named[key] = true
			b.add(&event{phase: 'M', name: []byte("process_name"), pid: e.pid, args: arguments{label: []byte(x.Plane)}})
			b.add(&event{phase: 'M', name: []byte("thread_name"), pid: e.pid, tid: e.tid, args: arguments{label: []byte(x.Line)}})
		}
		first = min(first, e.start)
		events = append(events, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, errors.New("the profile holds no events: was it stopped before a step ran?")
	}
	for i := range events {
		e := &events[i]
		end := (e.start - first + e.dur) / 1000
		e.start = (e.start - first) / 1000
		e.dur = end - e.start
		b.add(e)
	}
	if b.over != nil {
		return nil, b.over
	}
	if len(b.process) == 0 || !b.hasDevices() {
		return nil, errors.New("this profile holds no device's work: record with jax.profiler.trace around steps that run on one")
	}
	return b.settle(), nil
}

func (t *builder) hasDevices() bool {
	for _, name := range t.process {
		if strings.HasPrefix(name, "/device:") {
			return true
		}
	}
	return false
}

// readSnapshot reads a memory snapshot of PyTorch. It has no timed events, so the report describes
// only the snapshot.
func readSnapshot(r io.Reader) (*Trace, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	s, err := memory.Read(data)
	if err != nil {
		return nil, err
	}
	return &Trace{Snapshot: s, Format: "PyTorch memory snapshot"}, nil
}

// readNsys reads what Nsight Systems exported. SQLite's pages are read in any order, which needs a
// file: what comes out of an archive or a pipe is put into a temporary one.
func readNsys(ctx context.Context, name string, packed bool, r io.Reader, left *Budget, progress func(done, size int64)) (*Trace, error) {
	var f *os.File
	info, err := os.Stat(name)
	if packed || err != nil || !info.Mode().IsRegular() {
		if f, err = os.CreateTemp("", "haul-*.sqlite"); err != nil {
			return nil, err
		}
		defer os.Remove(f.Name())
		progress = nil // the unpacking has reported progress already
		_, err = io.Copy(f, r)
	} else {
		f, err = os.Open(name)
		if wal, err := os.Stat(name + "-wal"); err == nil && wal.Size() > 0 {
			return nil, fmt.Errorf("%s-wal holds changes that are not in the file yet: close what writes it, or export the report again", name)
		}
	}
	if f != nil {
		defer f.Close()
	}
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	b := newBuilder(left)
	b.Format = "Nsight Systems"
	n := 0
	models, err := nsys.Read(&progressFile{ctx, f, 0, info.Size(), progress}, info.Size(), left.limits, func(row nsys.Row) {
		n++
		b.add(nsysEvent(row))
	})
	if err == nil {
		err = b.over
	}
	if err != nil {
		return nil, err
	}
	for _, c := range models {
		b.GPUModels = append(b.GPUModels, GPUModel{c.Name, c.Major, c.Minor, c.Processors})
	}
	if n == 0 {
		return nil, errors.New("the export holds no GPU work and no driver calls: record with --trace=cuda,nvtx")
	}
	return b.settle(), nil
}

// progressFile is a file that reports how much of it has been read. Reads fail after ctx is
// cancelled.
type progressFile struct {
	ctx context.Context
	io.ReaderAt
	done, size int64
	progress   func(done, size int64)
}

func (t *progressFile) ReadAt(b []byte, at int64) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.ReaderAt.ReadAt(b, at)
	if t.done += int64(n); t.progress != nil {
		t.progress(min(t.done, t.size), t.size)
	}
	return n, err
}

func nsysEvent(row nsys.Row) *event {
	e := &event{phase: 'X', name: []byte(row.Name), start: row.Start, dur: row.End - row.Start, hasStart: true, hasDur: true,
		pid: []byte("0"), tid: strconv.AppendInt(nil, row.Thread, 10)}
	e.args.blocks, e.args.total = -1, -1
	e.args.correlation = uint32(row.Correlation)
	e.args.device, e.args.hasDevice, e.args.stream = uint32(row.Device), true, uint32(row.Stream)
	e.args.bytes = uint32(min(row.Bytes, math.MaxUint32))
	if row.Blocks >= 0 {
		e.args.grid = float32(row.Blocks)
	}
	switch row.Kind {
	case nsys.Kernel:
		e.cat = CatKernel
	case nsys.Copy:
		e.cat = CatCopy
		memory := "Pinned"
		if row.HostPageable {
			memory = "Pageable"
		}
		e.name = fmt.Appendf(nil, "Memcpy %s (%s)", row.Direction, memory)
	case nsys.Set:
		e.cat, e.name = catSet, []byte("Memset")
	case nsys.Call:
		e.cat = catCall
	case nsys.Range:
		e.cat = catNote
		if name, _, ok := strings.Cut(row.Name, ", op_id"); ok || strings.HasPrefix(row.Name, "aten::") {
			// torch.autograd.profiler.emit_nvtx
			e.cat, e.name = catOp, []byte(strings.TrimSuffix(name, ", seq"))
		}
	}
	return e
}

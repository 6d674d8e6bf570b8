package doctor

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"haul/internal/doctor/nsys"
	"haul/internal/doctor/report"
	"haul/internal/doctor/trace"
	"haul/internal/sqlite/sqlitetest"
)

// jaxEvents is a small run as JAX's profiler writes it: no categories, devices and streams by name.
func jaxEvents() string {
	var b strings.Builder
	for _, m := range []string{
		`{"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:GPU:0"}}`, `{"ph":"M","name":"thread_name","pid":1,"tid":14,"args":{"name":"Stream #14(Compute)"}}`,
		`{"ph":"M","name":"thread_name","pid":1,"tid":20,"args":{"name":"XLA Ops - from #14"}}`,
		`{"ph":"M","name":"process_name","pid":2,"args":{"name":"/device:GPU:1"}}`, `{"ph":"M","name":"thread_name","pid":2,"tid":15,"args":{"name":"Stream #15(Compute)"}}`,
		`{"ph":"M","name":"process_name","pid":701,"args":{"name":"/host:CPU"}}`, `{"ph":"M","name":"thread_name","pid":701,"tid":9,"args":{"name":"python"}}`,
	} {
		b.WriteString(m + ",\n")
	}
	for i := range 40 {
		ts := 100 * i
		fmt.Fprintf(&b, `{"ph":"X","name":"PjitFunction(step)","pid":701,"tid":9,"ts":%d,"dur":60},`+"\n", ts)
		for d := range 2 {
			id := 2*i + d + 1
			fmt.Fprintf(&b, `{"ph":"X","name":"cuLaunchKernelEx","pid":701,"tid":9,"ts":%d,"dur":5,"args":{"correlation_id":"%d"}},`+"\n", ts+20+10*d, id)
			fmt.Fprintf(&b, `{"ph":"X","name":"loop_fusion","pid":%d,"tid":%d,"ts":%d,"dur":20,"args":{"correlation_id":"%d","kernel_details":"grid:16,1,1 block:512,1,1"}},`+"\n", d+1, 14+d, ts+40, id)
		}
		fmt.Fprintf(&b, `{"ph":"X","name":"fusion","pid":1,"tid":20,"ts":%d,"dur":20},`+"\n", ts+40)
	}
	b.WriteString(`{}`)
	return `{"displayTimeUnit":"ns","traceEvents":[` + b.String() + `]}`
}

func TestJAX(t *testing.T) {
	r := diagnose(t, []byte(jaxEvents()))
	if len(r.Breakdown.GPUs) != 2 || r.Steps != 39 || r.PerStep.Kernels != 2 {
		t.Fatalf("%+v, %v kernels", r.Breakdown.GPUs, r.PerStep.Kernels)
	}
	for _, g := range r.Breakdown.GPUs {
		if g.Kernels != 39 || g.BusyShare < 0.19 || g.BusyShare > 0.21 {
			t.Errorf("%+v, want 39 kernels, a fifth busy", g)
		}
	}
	if got := ids(r); len(got) == 0 || got[0] != "launch-bound" {
		t.Errorf("findings %v", costsOf(r))
	}
	for _, m := range r.Remarks {
		if strings.Contains(m, "ProfilerStep") || strings.Contains(m, "ProfilerActivity") {
			t.Errorf("PyTorch's advice for JAX: %s", m)
		}
	}
}

// Events without categories and devices are not taken for JAX's.
func TestBareEventsOfOthers(t *testing.T) {
	tr, err := trace.Read(strings.NewReader(`[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":5},{"ph":"X","name":"b","pid":1,"tid":1,"ts":9,"dur":5}]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Diagnose(tr); err == nil || !strings.Contains(err.Error(), "nothing to measure") {
		t.Errorf("got %v", err)
	}
}

// xspace encodes the run of jaxEvents by xplane.proto.
func xspace() []byte {
	message := func(b []byte, field protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body)
	}
	number := func(b []byte, field protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
	}
	entry := func(id uint64, name string) []byte {
		return message(number(nil, 1, id), 2, message(number(nil, 1, id), 2, []byte(name)))
	}
	plane := func(name, line string, events [][]byte, names ...string) []byte {
		p := message(nil, 2, []byte(name))
		l := message(number(nil, 1, 14), 2, []byte(line))
		l = number(l, 3, 5000)
		for _, e := range events {
			l = message(l, 4, e)
		}
		p = message(p, 3, l)
		for i, n := range names {
			p = message(p, 4, entry(uint64(i+1), n))
		}
		for i, n := range []string{"correlation_id", "kernel_details", "unknown"} {
			p = message(p, 5, entry(uint64(i+1), n))
		}
		return p
	}
	event := func(name, start, dur, correlation uint64) []byte {
		e := number(number(number(nil, 1, name), 2, start*1e6), 3, dur*1e6)
		if correlation > 0 {
			e = message(e, 4, number(number(nil, 1, 1), 3, correlation))
			e = message(e, 4, message(number(nil, 1, 2), 5, []byte("grid:16,1,1 block:512,1,1")))
			e = message(e, 4, message(number(nil, 1, 3), 6, []byte{1, 2}))
		}
		return e
	}
	var host [][]byte
	device := make([][][]byte, 2)
	for i := range uint64(40) {
		ts := 100 * i
		host = append(host, event(1, ts, 60, 0))
		for d := range uint64(2) {
			host = append(host, event(2, ts+20+10*d, 5, 2*i+d+1))
			device[d] = append(device[d], event(1, ts+40, 20, 2*i+d+1))
		}
	}
	var b []byte
	b = message(b, 1, plane("/device:GPU:0", "Stream #14(Compute)", device[0], "loop_fusion"))
	b = message(b, 1, plane("/device:GPU:1", "Stream #14(Compute)", device[1], "loop_fusion"))
	b = message(b, 1, plane("/host:CPU", "python", host, "PjitFunction(step)", "cuLaunchKernelEx"))
	return message(b, 4, []byte("host"))
}

func load(t testing.TB, path string) ([]*report.Report, error) {
	t.Helper()
	var out []*report.Report
	err := trace.Load(context.Background(), path, func(name string, tr *trace.Trace) error {
		r, err := report.Diagnose(tr)
		if err == nil {
			r.File = name
			out = append(out, r)
		}
		return err
	})
	return out, err
}

func loadOne(t testing.TB, path string) *report.Report {
	t.Helper()
	list, err := load(t, path)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d traces, %v", len(list), err)
	}
	return list[0]
}

func writeTemp(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The same run as xplane and as JSON gives the same figures.
func TestXplane(t *testing.T) {
	want := diagnose(t, []byte(jaxEvents()))
	got := loadOne(t, writeTemp(t, "host.xplane.pb", xspace()))
	if got.StepMS != want.StepMS || got.GPUBusyShare != want.GPUBusyShare || got.PerStep != want.PerStep || !slices.Equal(got.Breakdown.GPUs, want.Breakdown.GPUs) || !slices.Equal(ids(got), ids(want)) {
		t.Errorf("%v %v %+v %v\nwant %v %v %+v %v", got.StepMS, got.GPUBusyShare, got.Breakdown.GPUs, costsOf(got), want.StepMS, want.GPUBusyShare, want.Breakdown.GPUs, costsOf(want))
	}
	data := xspace()
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"cut.xplane.pb", data[:len(data)/2], "damaged or cut off"},
		{"empty.xplane.pb", nil, "the file is empty"},
		{"words.xplane.pb", []byte("hello, this is text"), "no xplane file"},
		{"host.xplane.pb", data[len(data)-6:], "no events"},
	} {
		if _, err := load(t, writeTemp(t, c.name, c.data)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// nsysTables is an export by the published schema: kernels, calls, copies, a GPU.
// scripts/nsys_fixture.py writes the same with SQLite itself.
func nsysTables() []sqlitetest.Table {
	var ranges, calls, kernels [][]any
	for i := range 50 {
		at := 100_000 * i
		ranges = append(ranges, []any{at, at + 60_000, 59, nil, 77, 4})
		calls = append(calls, []any{at + 30_000, at + 36_000, 0, 77, 2*i + 1, 1, 0})
		kernels = append(kernels, []any{at + 40_000, at + 60_000, 0, 1, 7, 2*i + 1, 0, 2, 2, 33, 1, 1})
	}
	calls = append(calls, []any{5_000_000, 5_006_000, 0, 77, 900, 3, 0}, []any{5_006_000, 5_021_000, 0, 77, 0, 5, 0})
	slices.Reverse(calls) // threads are written in sequence, and each is sorted separately
	var names [][]any
	for i, name := range []string{"cudaLaunchKernel_v7000", "void at::native::add<float>", "cudaMemcpyAsync_v3020", "aten::add, op_id = 7", "cudaStreamSynchronize_v3020"} {
		names = append(names, []any{sqlitetest.RowID(i + 1), name})
	}
	return []sqlitetest.Table{
		{SQL: `CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)`, Rows: names},
		{SQL: `CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER)`, Rows: calls},
		{SQL: `CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER)`, Rows: kernels},
		{SQL: `CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER, correlationId INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER)`,
			Rows: [][]any{{5_010_000, 5_020_000, 0, 7, 900, 4096, 2, 2, 0}}},
		{SQL: `CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER)`, Rows: [][]any{{0, "NVIDIA H200", 132, 9, 0}}},
		{SQL: `CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, textId INTEGER)`, Rows: ranges},
	}
}

func TestNsys(t *testing.T) {
	written := sqlitetest.File(4096, nsysTables()...)
	real, err := os.ReadFile(filepath.Join("testdata", "nsys.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"written": written, "by SQLite": real} {
		t.Run(name, func(t *testing.T) {
			r := loadOne(t, writeTemp(t, "report.sqlite", data))
			if r.PerStep.Kernels != 50 || r.PerStep.Copies != 1 || r.PerStep.Waits != 1 || r.GPU != "NVIDIA H200" || r.GPUBusyShare < 0.19 || r.GPUBusyShare > 0.21 {
				t.Errorf("%+v, busy %v on %s", r.PerStep, r.GPUBusyShare, r.GPU)
			}
			if got := ids(r); len(got) == 0 || got[0] != "launch-bound" && got[0] != "small-batch" {
				t.Errorf("findings %v", costsOf(r))
			}
			if len(r.Breakdown.Copies) != 1 || r.Breakdown.Copies[0].Direction != "to the host, pageable" {
				t.Errorf("%+v", r.Breakdown.Copies)
			}
			// a file must be made of it
			packed := loadOne(t, writeTemp(t, "report.sqlite.gz", pack(t, data)))
			if packed.PerStep != r.PerStep {
				t.Errorf("packed %+v, want %+v", packed.PerStep, r.PerStep)
			}
			for _, n := range []int{2048, 4096, len(data) - 1} {
				if _, err := load(t, writeTemp(t, "cut.sqlite", data[:n])); err == nil || !strings.Contains(err.Error(), "cut.sqlite") || strings.Contains(err.Error(), "\n") {
					t.Errorf("a SQLite file cut at %d: %v", n, err)
				}
			}
		})
	}
	other := sqlitetest.File(4096, sqlitetest.Table{SQL: `CREATE TABLE a (b INTEGER)`})
	if _, err := load(t, writeTemp(t, "report.sqlite", other)); err == nil || !strings.Contains(err.Error(), "nsys export --type sqlite") {
		t.Errorf("another SQLite file: %v", err)
	}
	path := writeTemp(t, "open.sqlite", written)
	if err := os.WriteFile(path+"-wal", []byte("changes"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, path); err == nil || !strings.Contains(err.Error(), "changes that are not in the file yet") {
		t.Errorf("a file that is being written: %v", err)
	}
}

// SQLite's own file gives, row for row, what the written one gives.
func TestNsysRows(t *testing.T) {
	real, err := os.ReadFile(filepath.Join("testdata", "nsys.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	var rows [2][]nsys.Row
	var gpus [2][]nsys.GPU
	for i, data := range [][]byte{sqlitetest.File(512, nsysTables()...), real} {
		gpus[i], err = nsys.Read(bytes.NewReader(data), int64(len(data)), nil, func(r nsys.Row) { rows[i] = append(rows[i], r) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(rows[0], rows[1]); diff != "" || !slices.Equal(gpus[0], gpus[1]) {
		t.Errorf("%s%v, %v", diff, gpus[0], gpus[1])
	}
	for _, kind := range []nsys.Kind{nsys.Call, nsys.Range} {
		last := int64(-1)
		for _, r := range rows[0] {
			if r.Kind == kind {
				if r.Start < last || r.Name == "" {
					t.Errorf("%+v comes after one that starts at %d", r, last)
				}
				last = r.Start
			}
		}
	}
}

// What versions of the export leave out stands for itself; what no export is without is asked for.
func TestNsysVersions(t *testing.T) {
	read := func(tables ...sqlitetest.Table) (out []nsys.Row, err error) {
		data := sqlitetest.File(1024, tables...)
		_, err = nsys.Read(bytes.NewReader(data), int64(len(data)), nil, func(r nsys.Row) { out = append(out, r) })
		return out, err
	}
	got, err := read(
		sqlitetest.Table{SQL: "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, gridX INTEGER)", Rows: [][]any{{5, 9, 3}, {7, nil, 3}, {8.0, 12, nil}}},
		sqlitetest.Table{SQL: "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, copyKind INTEGER, srcKind INTEGER)", Rows: [][]any{{1, 2, 1, 0}, {3, 4, 2, 0}}},
		sqlitetest.Table{SQL: "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, bytes INTEGER)", Rows: [][]any{{1, 2, 64}}},
		sqlitetest.Table{SQL: "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT)", Rows: [][]any{{20, 30, "b"}, {10, 15, "c"}, {10, 19, "a"}, {1, nil, "open"}, {1, 1, "mark"}}})
	want := []nsys.Row{
		{Kind: nsys.Kernel, Start: 5, End: 9, Blocks: 3}, {Kind: nsys.Kernel, Start: 8, End: 12},
		{Kind: nsys.Copy, Start: 1, End: 2, Direction: "HtoD", HostPageable: true}, {Kind: nsys.Copy, Start: 3, End: 4, Direction: "DtoH"},
		{Kind: nsys.Set, Start: 1, End: 2, Bytes: 64},
		{Kind: nsys.Range, Start: 10, End: 19, Name: "a"}, {Kind: nsys.Range, Start: 10, End: 15, Name: "c"}, {Kind: nsys.Range, Start: 20, End: 30, Name: "b"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for sql, want := range map[string]string{
		"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, finish INTEGER)": "CUPTI_ACTIVITY_KIND_KERNEL has no column end",
		"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start TEXT, end INTEGER)":       "start is no whole number",
	} {
		if _, err := read(sqlitetest.Table{SQL: sql, Rows: [][]any{{"noon", 1}}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", sql, err, want)
		}
	}
}

func TestPackings(t *testing.T) {
	s := newSynth()
	s.step(1, func() { s.dense(20, 30) })
	data := s.json()
	want := diagnose(t, data)
	var zipped, tarred, zst bytes.Buffer
	z := zip.NewWriter(&zipped)
	for name, text := range map[string]string{"README.txt": "words", "run/trace.json": string(data)} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	a := tar.NewWriter(&tarred)
	for _, f := range []struct{ name, text string }{{"notes.md", "words"}, {"rank0.json.gz", string(pack(t, data))}, {"rank1.json", string(data)}} {
		if err := a.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data []byte
		n    int
	}{
		{"a.zip", zipped.Bytes(), 1}, {"a.tar", tarred.Bytes(), 2}, {"a.tar.gz", pack(t, tarred.Bytes()), 2}, {"a.json.zst", zst.Bytes(), 1},
		{"no-name", data, 1}, {"wrong.gz", data, 1}, {"bom.json", append([]byte("\ufeff"), data...), 1},
	} {
		list, err := load(t, writeTemp(t, c.name, c.data))
		if err != nil || len(list) != c.n {
			t.Errorf("%s: %d traces, %v, want %d", c.name, len(list), err, c.n)
			continue
		}
		for _, r := range list {
			if r.StepMS != want.StepMS || r.PerStep != want.PerStep {
				t.Errorf("%s: %+v", c.name, r.PerStep)
			}
		}
	}
	// One operator, packed by bzip2 itself: Go only unpacks.
	bzipped, err := base64.StdEncoding.DecodeString("QlpoOTFBWSZTWQLgK48AAC0fgBAEMBACAABKrmPfCiAAVESPRPQNTCYmyDU9Kaeoepo0B+qND86VqlMJqCCRYgnOhBEwGlJFoZvrRc6cIn+Ajt1V+Dvz0ukUQfQmEDWHA9pdF4LuSKcKEgBcBXHg")
	if err != nil {
		t.Fatal(err)
	}
	if one, err := trace.ReadFile(writeTemp(t, "a.json.bz2", bzipped)); err != nil || one.Events != 1 {
		t.Errorf("a.json.bz2: %+v, %v", one, err)
	}
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"words.zip", "no trace in this archive", emptyZip(t)},
		{"cut.zip", "damaged or cut off", zipped.Bytes()[:40]},
		{"cut.json.zst", "cut.json.zst", zst.Bytes()[:len(zst.Bytes())/2]},
		{"cut.json.bz2", "cut.json.bz2", bzipped[:len(bzipped)/2]},
		{"a.json.xz", "damaged or cut off", []byte("\xfd7zXZ\x00\x00\x04")},
		{"a.json.7z", "unpack it, or pack it as .gz or .zst", []byte("7z\xbc\xaf\x27\x1c\x00\x04")},
		{"a.nsys-rep", "nsys export --type sqlite", []byte("\x01\x02report")},
		{"a.pickle", "the snapshot is damaged", []byte("\x80\x04\x95")},
		{"b.pickle", "_dump_snapshot", []byte("\x80\x02].")},
		{"a.pftrace", "traceconv", []byte("\x0a\x05hello")},
		{"a.ncu-rep", "single kernels", []byte("NVR\x00")},
	} {
		if _, err := load(t, writeTemp(t, c.name, c.data)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func emptyZip(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("README.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("words")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := trace.Load(ctx, recording("item_sync"), func(string, *trace.Trace) error { return nil })
	if err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestFoldersInOrder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rank10.json", "rank2.json.gz", "sub/rank1.json", "notes.txt", ".hidden.json"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := trace.Expand([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i], _ = filepath.Rel(dir, got[i])
	}
	if want := []string{"rank2.json.gz", "rank10.json", filepath.Join("sub", "rank1.json")}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Keys that scripts read exist even if nothing was found.
func TestJSONOfRecordings(t *testing.T) {
	s := newSynth()
	s.step(1, func() { s.dense(40, 200) })
	data, err := json.Marshal(diagnose(t, s.json()))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"recorded":[]`, `"findings":[]`, `"breakdown":{`, `"compute_share":`, `"queue_depth":`, `"gpus":[`} {
		if !bytes.Contains(data, []byte(key)) {
			t.Errorf("no %s in %s", key, data)
		}
	}
}

// TestNsysCopies: which way a copy goes, by CUPTI's numbers of kinds: those of arrays too.
func TestNsysCopies(t *testing.T) {
	want := map[int]string{1: "HtoD", 2: "DtoH", 3: "HtoD", 4: "DtoH", 5: "", 8: "DtoD", 10: "PtoP"}
	var rows [][]any
	for kind := range 11 {
		rows = append(rows, []any{kind, kind + 1, kind, 0, 0})
	}
	data := sqlitetest.File(1024, sqlitetest.Table{SQL: "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)"},
		sqlitetest.Table{SQL: "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER)", Rows: rows})
	seen := 0
	_, err := nsys.Read(bytes.NewReader(data), int64(len(data)), nil, func(r nsys.Row) {
		seen++
		if got := want[int(r.Start)]; r.Direction != got || r.HostPageable != (got == "HtoD" || got == "DtoH") {
			t.Errorf("kind %d: %q, pageable %v; want %q", r.Start, r.Direction, r.HostPageable, got)
		}
	})
	if err != nil || seen != len(rows) {
		t.Errorf("%d copies, %v", seen, err)
	}
}

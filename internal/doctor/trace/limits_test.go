package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"haul/internal/limits"
	"haul/internal/sqlite/sqlitetest"
)

// repeated is a stream: a head, n times a body, a tail.
type repeated struct {
	head, body, tail string
	n                int
	left             string
	made             int // bodies
}

func (r *repeated) Read(b []byte) (int, error) {
	for r.left == "" {
		switch {
		case r.head != "":
			r.left, r.head = r.head, ""
		case r.made < r.n:
			if r.left = r.body; r.made == r.n-1 {
				r.left = strings.TrimSuffix(r.body, ",")
			}
			r.made++
		case r.tail != "":
			r.left, r.tail = r.tail, ""
		default:
			return 0, io.EOF
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// tagged is a field of a message.
func tagged(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// TestEventsAreLimited: as many events as the limit allows are read from each format; one more and
// a thousand times as many are refused in a line that names the limit and its flag, before the
// events past the limit are held.
func TestEventsAreLimited(t *testing.T) {
	const most = 16
	const event = `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":5},`
	formats := map[string]func(n int) io.Reader{
		"chrome": func(n int) io.Reader { return &repeated{head: `{"traceEvents":[`, body: event, n: n, tail: "]}"} },
		"array":  func(n int) io.Reader { return &repeated{head: `[`, body: event, n: n, tail: "]"} },
		"empty":  func(n int) io.Reader { return &repeated{head: `[`, body: `{},`, n: n, tail: "]"} },
		"gzip": func(n int) io.Reader {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := io.Copy(z, &repeated{head: `[`, body: event, n: n, tail: "]"}); err != nil || z.Close() != nil {
				t.Fatal(err)
			}
			return &b
		},
		"rocprof": func(n int) io.Reader {
			return &repeated{head: `{"rocprofiler-sdk-tool":[{"buffer_records":{"hip_api":[`, body: `{"start_timestamp":1,"end_timestamp":2},`, n: n, tail: "]}}]}"}
		},
		"nsys": func(n int) io.Reader {
			rows := make([][]any, n)
			for i := range rows {
				rows[i] = []any{1 + i, 2 + i}
			}
			return bytes.NewReader(sqlitetest.File(512, sqlitetest.Table{SQL: "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end)", Rows: rows}))
		},
		"xplane": func(n int) io.Reader {
			line := bytes.Repeat(tagged(4, nil), n-2) // the names of a process and of a thread are events
			return bytes.NewReader(tagged(1, append(tagged(2, []byte("/device:GPU:0")), tagged(3, line)...)))
		},
	}
	for name, format := range formats {
		for _, service := range []bool{false, true} {
			l, flag := limits.ForCommand(), "--set events=N"
			if service {
				l, flag = limits.ForService(), "haul serve --limit events=N"
			}
			if err := l.Raise([]string{fmt.Sprintf("events=%d", most)}); err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{most, most + 1, 1000 * most} {
				limit := NewBudget(math.MaxInt64, l)
				events := 0
				err := LoadReader(t.Context(), name, format(n), limit, func(_ string, tr *Trace) error {
					events = tr.Events
					return nil
				})
				var over *limits.Error
				if errors.As(err, &over) != (n > most) || n > most && (over.Limit != limits.Events || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), flag)) {
					t.Errorf("%s of %d events: %v", name, n, err)
				}
				if err == nil && events != n {
					t.Errorf("%s: %d events of %d", name, events, n)
				}
			}
		}
	}
}

// TestTinyEventsEnd: of a trace of 1.5 GB of tiny events, no more are read than the limit allows.
func TestTinyEventsEnd(t *testing.T) {
	l := limits.ForService()
	if err := l.Raise([]string{"events=100000"}); err != nil {
		t.Fatal(err)
	}
	in := &repeated{head: `{"traceEvents":[`, body: strings.Repeat(`{"ph":"X"},`, 1000), n: 140_000, tail: "]}"}
	_, err := readWithin(in, NewBudget(math.MaxInt64, l))
	var over *limits.Error
	if read := 1000 * in.made; !errors.As(err, &over) || read > 100_000+windowSize/10 {
		t.Errorf("%v after %d events", err, read)
	}
}

// TestTracesTogether: the traces of one upload share its events.
func TestTracesTogether(t *testing.T) {
	l := limits.ForService()
	if err := l.Raise([]string{"events=20"}); err != nil {
		t.Fatal(err)
	}
	left := NewBudget(math.MaxInt64, l)
	for i := range 3 {
		err := LoadReader(t.Context(), "t", &repeated{head: "[", body: `{"ph":"X"},`, n: 10, tail: "]"}, left, func(string, *Trace) error { return nil })
		if (err == nil) != (i < 2) {
			t.Errorf("trace %d: %v", i, err)
		}
	}
}

// TestAnExportListens: the reading of an export ends with its context, once it lies in a file.
func TestAnExportListens(t *testing.T) {
	rows := make([][]any, 10_000)
	for i := range rows {
		rows[i] = []any{1 + i, 2 + i}
	}
	data := sqlitetest.File(512, sqlitetest.Table{SQL: "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end)", Rows: rows})
	ctx, cancel := context.WithCancel(t.Context())
	in := &progressFile{ctx: ctx, ReaderAt: bytes.NewReader(data), size: int64(len(data)), progress: func(int64, int64) { cancel() }}
	if n, err := in.ReadAt(make([]byte, 100), 0); n != 100 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := in.ReadAt(make([]byte, 100), 0); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

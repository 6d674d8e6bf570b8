package doctor

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/trace"
)

// bomb is a gzip file of `size` blanks inside a trace.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, `{"traceEvents": [`+strings.Repeat(" ", size)+`]}`); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoadReaderEndsABomb(t *testing.T) {
	once := bomb(t, 8<<20)
	var twice bytes.Buffer
	z := gzip.NewWriter(&twice)
	if _, err := z.Write(once); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"once": once, "twice": twice.Bytes(), "plain": bytes.Repeat([]byte(" "), 3<<20)} {
		left := trace.NewBudget(1<<20, nil)
		err := trace.LoadReader(t.Context(), name+".json.gz", bytes.NewReader(data), left, func(string, *trace.Trace) error { return nil })
		if !errors.Is(err, trace.ErrTooLarge) {
			t.Errorf("%s: %v, want that it is too large", name, err)
		}
	}
}

// A name that comes with an upload is a word: the file of that name on this machine is not read.
func TestLoadReaderOpensNoFile(t *testing.T) {
	sample, err := os.ReadFile("../../docs/examples/report.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.sqlite")
	if err := os.WriteFile(path, []byte("SQLite format 3\x00 and nothing else"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, left := 0, trace.NewBudget(1<<30, nil)
	err = trace.LoadReader(context.Background(), path, bytes.NewReader(sample), left, func(name string, tr *trace.Trace) error {
		got++
		_, err := report.Diagnose(tr)
		return err
	})
	if err != nil || got != 1 {
		t.Errorf("%d traces, %v: the file of that name was opened", got, err)
	}
}

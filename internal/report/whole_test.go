package report

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Each piece is written once, after the previous one.
func TestAppendFileGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	a, err := openAppend(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, piece := range []string{"one ", "two ", "", "three"} {
		if err := a.add([]byte(piece)); err != nil {
			t.Fatal(err)
		}
		want += piece
		if got, err := os.ReadFile(path); err != nil || string(got) != want || a.size != int64(len(want)) {
			t.Fatalf("%q of %d bytes, want %q: %v", got, a.size, want, err)
		}
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
}

// If a file cannot be written completely, the old one stays and no temporary file does.
func TestWholeOrNotAtAll(t *testing.T) {
	f := newFiles(func(string) {})
	f.dir = t.TempDir()
	if err := f.whole("a", func(w io.Writer) error { _, err := io.WriteString(w, "old"); return err }); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("disk full")
	if err := f.whole("a", func(w io.Writer) error { _, _ = io.WriteString(w, "ha"); return bad }); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if got, err := os.ReadFile(f.path("a")); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
}

// A row is on the disk when Record returns: the checkpoint that follows requires it.
func TestRowsReachTheDisk(t *testing.T) {
	was := syncFile
	defer func() { syncFile = was }()
	onDisk := map[string]int64{}
	syncFile = func(f *os.File) error {
		if st, err := f.Stat(); err == nil {
			onDisk[f.Name()] = st.Size()
		}
		return was(f)
	}
	dir := t.TempDir()
	f := NewFolder(func(s string) { t.Error(s) })
	i, v := infoOf(dir)
	f.Start(i)
	for n := 1; n <= 3; n++ {
		send(f, v, n)
		path := filepath.Join(dir, filepath.FromSlash(sampleFile))
		st, err := os.Stat(path)
		if err != nil || onDisk[path] != st.Size() {
			t.Errorf("after row %d the disk has %d bytes of %s, %v", n, onDisk[path], path, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

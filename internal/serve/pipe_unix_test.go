//go:build unix

package serve

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A named pipe among the runs, or in the place of a checkpoint, is not opened: nobody writes to it,
// and the server would wait forever.
func TestPipesAreNotOpened(t *testing.T) {
	runs := t.TempDir()
	dir := makeRun(t, runs, "a-001", 1)
	for _, name := range []string{filepath.Join(runs, "pipe"), filepath.Join(dir, "best.safetensors")} {
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Skipf("no named pipes here: %v", err)
		}
	}
	if err := os.Symlink("pipe", filepath.Join(runs, "link")); err != nil {
		t.Fatal(err)
	}
	ready := make(chan *site, 1)
	go func() { ready <- open(t, func(o *Options) { o.Runs = runs }) }()
	select {
	case x := <-ready:
		x.refused(x.do("POST", "/api/v1/evaluate", `{"policy": "a-001"}`), 422, "no policy")
	case <-time.After(patience):
		t.Fatal("the server waits for a pipe")
	}
}

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestKernelsStandAlone: a module with one of its kernels has its head, its functions and that
// kernel, letter by letter, and no other.
func TestKernelsStandAlone(t *testing.T) {
	count := 0
	for _, name := range modules(t) {
		text, err := image(name)
		if err != nil {
			t.Fatal(err)
		}
		whole := string(text)
		all := entriesOf(text)
		if n := strings.Count(whole, ".entry"); len(all) != n || n == 0 {
			t.Fatalf("%s: %d kernels found of %d", name, len(all), n)
		}
		for _, e := range all {
			count++
			one, err := only(text, e.name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			body := whole[e.line : e.line+strings.Index(whole[e.line:], "\n}\n")+3]
			if !bytes.HasPrefix(one, []byte(whole[:min(all[0].line, 400)])) || !bytes.Contains(one, []byte(body)) || bytes.Count(one, []byte(".entry")) != 1 {
				t.Errorf("%s.%s is not cut out whole", name, e.name)
			}
			if a, b := strings.Count(whole, ".func"), bytes.Count(one, []byte(".func")); a != b {
				t.Errorf("%s.%s has %d functions of %d", name, e.name, b, a)
			}
		}
		if _, err := only(text, "nothing"); err == nil {
			t.Errorf("%s has a kernel named nothing", name)
		}
	}
	if count < 300 {
		t.Errorf("%d kernels", count)
	}
}

// TestKernelsShareNothing: a variable of a module would be another one for each of its kernels.
func TestKernelsShareNothing(t *testing.T) {
	for _, name := range modules(t) {
		text, err := image(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{".global .", ".const ."} {
			for _, how := range []string{"\n", "\n.visible ", "\n.weak ", "\n.extern ", "\n.common "} {
				if bytes.Contains(text, []byte(how+word)) {
					t.Errorf("%s has a variable:%s%s", name, how, word)
				}
			}
		}
	}
}

// fakeCompiler counts what it compiles; its code is a kernel's name and
// the length of its text.
func fakeCompiler(folder string) (*compiler, *atomic.Int32) {
	n := new(atomic.Int32)
	return &compiler{folder: folder, card: "card X", workers: 4, hopper: true, assemble: func(name string, ptx []byte) ([]byte, error) {
		n.Add(1)
		return fmt.Appendf(nil, "code of %s, %d", name, len(ptx)), nil
	}}, n
}

// named are parts that the embedded modules really have.
func named(t *testing.T) (parts []*part) {
	t.Helper()
	for _, module := range []string{"adamw", "elementwise", "embed"} {
		text, err := image(module)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entriesOf(text)[:4] {
			parts = append(parts, &part{module: module, kernel: e.name})
		}
	}
	return parts
}

func TestCompiledOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	c, n := fakeCompiler(dir)
	compile := func(parts []*part) []*part {
		t.Helper()
		missing, err := c.find(parts)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.compile(missing, nil); err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if want := fmt.Sprintf("code of %s, %d", p.name(), len(p.ptx)); string(p.code) != want {
				t.Errorf("%s: %q, want %q", p.name(), p.code, want)
			}
		}
		return missing
	}
	first := named(t)
	if missing := compile(first); len(missing) != 12 || n.Load() != 12 {
		t.Fatalf("%d missing, %d compiled", len(missing), n.Load())
	} else {
		for i := range missing[1:] {
			if len(missing[i].ptx) < len(missing[i+1].ptx) {
				t.Error("a long text waits for a short one")
			}
		}
	}
	if missing := compile(named(t)); len(missing) != 0 || n.Load() != 12 {
		t.Errorf("again: %d missing, %d compiled", len(missing), n.Load())
	}
	// damage, another driver or another text is not taken for it
	if err := os.Truncate(c.path(first[3]), 20); err != nil {
		t.Fatal(err)
	}
	if missing := compile(named(t)); len(missing) != 1 || missing[0].name() != first[3].name() {
		t.Errorf("a damaged file: %d missing", len(missing))
	}
	c.card = "card X, another driver"
	if missing := compile(named(t)); len(missing) != 12 {
		t.Errorf("another driver: %d missing", len(missing))
	}
	c.overlaps = true
	if missing := compile(named(t)); len(missing) != 12 {
		t.Errorf("another text: %d missing", len(missing))
	}
	left, err := filepath.Glob(filepath.Join(dir, "new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestCompileFallsBack: what the driver does not compile ahead is loaded as PTX, and a folder that
// cannot be written costs nothing but time.
func TestCompileFallsBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*compiler{
		"no compiler": {workers: 2},
		"refused": {workers: 2, folder: t.TempDir(), assemble: func(string, []byte) ([]byte, error) {
			return nil, errors.New("no")
		}},
	} {
		parts := named(t)
		missing, err := c.find(parts)
		if err != nil || len(missing) != len(parts) {
			t.Fatalf("%s: %d missing, %v", name, len(missing), err)
		}
		if err := c.compile(missing, nil); (err != nil) != (c.assemble != nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, p := range parts {
			if !bytes.Equal(p.code, p.ptx) || len(p.ptx) == 0 {
				t.Errorf("%s: %s is not loaded as PTX", name, p.name())
			}
		}
	}
	c, n := fakeCompiler(file)
	parts := named(t)
	missing, err := c.find(parts)
	if err == nil {
		err = c.compile(missing, nil)
	}
	if err != nil || n.Load() != 12 || !bytes.HasPrefix(parts[0].code, []byte("code of")) {
		t.Errorf("a folder that is none: %v", err)
	}
	if _, err := c.prepare(nil); err == nil {
		t.Error("prepared in a folder that is none")
	}
	if _, err := c.find([]*part{{module: "norm", kernel: "nothing"}}); err == nil || !strings.Contains(err.Error(), "norm: no kernel nothing") {
		t.Errorf("an unknown kernel: %v", err)
	}
}

func TestPrepareCompilesAll(t *testing.T) {
	c, n := fakeCompiler(t.TempDir())
	var mu sync.Mutex
	last := 0
	p, err := c.prepare(func(done, all int) {
		mu.Lock()
		defer mu.Unlock()
		if done != last+1 || done > all {
			t.Errorf("%d of %d after %d", done, all, last)
		}
		last = done
	})
	if err != nil || p.Kernels != int(n.Load()) || p.Compiled != p.Kernels || p.Kernels < 300 || last != p.Kernels {
		t.Fatalf("%+v, %d compiled, %d told, %v", p, n.Load(), last, err)
	}
	if testing.Short() {
		return // the race detector has seen the workers
	}
	if again, err := c.prepare(nil); err != nil || again.Compiled != 0 || again.Kernels != p.Kernels {
		t.Errorf("again: %+v, %v", again, err)
	}
	c.hopper = false
	if older, err := c.prepare(nil); err != nil || older.Kernels >= p.Kernels {
		t.Errorf("a card that is no Hopper: %+v, %v", older, err)
	}
}

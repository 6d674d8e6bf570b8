package cuda

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"haul/internal/cu"
)

// TestKernelsStandAlone: a module with one of its kernels has its head, its functions and that
// kernel, letter by letter, and no other.
func TestKernelsStandAlone(t *testing.T) {
	count := 0
	for _, name := range Modules() {
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
	for _, name := range Modules() {
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

// fakeCard keeps what is loaded on it, each module's name by its number.
type fakeCard struct {
	mu     sync.Mutex
	names  []string // in the order of loading; a module's number is its place, from 1 on
	texts  [][]byte
	here   int
	refuse string // a kernel
}

func (f *fakeCard) compiler(cache string) *compiler {
	return &compiler{cache: cache, workers: 4, hopper: true, load: func(name string, ptx []byte) (cu.Module, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if name == f.refuse {
			return 0, fmt.Errorf("load kernels %s: no", name)
		}
		f.names, f.texts = append(f.names, name), append(f.texts, ptx)
		f.here++
		return cu.Module(len(f.names)), nil
	}, unload: func(m cu.Module) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.here--
		return nil
	}}
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

// TestKernelsAreLoaded: each part has its own text and its own module, and those with long texts
// come first.
func TestKernelsAreLoaded(t *testing.T) {
	var f fakeCard
	c := f.compiler("")
	c.workers = 1 // in order
	parts, told := named(t), 0
	if err := c.find(parts); err != nil {
		t.Fatal(err)
	}
	if err := c.compile(parts, func(done int) {
		if told++; done != told {
			t.Errorf("%d are done, %d were told", done, told)
		}
	}); err != nil || told != len(parts) || len(f.names) != len(parts) {
		t.Fatalf("%d loaded, %d told, %v", len(f.names), told, err)
	}
	for _, p := range parts {
		if p.loaded == 0 || f.names[p.loaded-1] != p.name() || !bytes.Equal(f.texts[p.loaded-1], p.ptx) || !bytes.Contains(p.ptx, []byte(p.kernel)) {
			t.Errorf("%s has module %d", p.name(), p.loaded)
		}
	}
	for i := range f.texts[1:] {
		if len(f.texts[i]) < len(f.texts[i+1]) {
			t.Errorf("%s waits for a shorter text", f.names[i+1])
		}
	}
	if err := c.find([]*part{{module: "norm", kernel: "nothing"}}); err == nil || !strings.Contains(err.Error(), "norm: no kernel nothing") {
		t.Errorf("an unknown kernel: %v", err)
	}
}

// TestARefusedKernelIsNamed in one line, and the others are there, to be unloaded.
func TestARefusedKernelIsNamed(t *testing.T) {
	parts := named(t)
	f := fakeCard{refuse: parts[3].name()}
	c := f.compiler("")
	err := c.find(parts)
	if err != nil {
		t.Fatal(err)
	}
	if err = c.compile(parts, func(int) {}); err == nil || err.Error() != "load kernels "+f.refuse+": no" {
		t.Errorf("error %v", err)
	}
	for i, p := range parts {
		if (p.loaded == 0) != (i == 3) {
			t.Errorf("%s has module %d", p.name(), p.loaded)
		}
	}
}

func TestPrepareCompilesAll(t *testing.T) {
	var f fakeCard
	c := f.compiler(t.TempDir())
	last := 0
	p, err := c.prepare(func(done, all int) {
		if done != last+1 || done > all {
			t.Errorf("%d of %d after %d", done, all, last)
		}
		last = done
	})
	if err != nil || p.Kernels != len(f.names) || p.Kernels < 300 || last != p.Kernels || p.Folder != c.cache || f.here != 0 {
		t.Fatalf("%+v, %d compiled, %d told, %d left on the card, %v", p, len(f.names), last, f.here, err)
	}
	if testing.Short() {
		return // the race detector has seen the workers
	}
	c.hopper = false
	if older, err := c.prepare(nil); err != nil || older.Kernels >= p.Kernels {
		t.Errorf("a card that is no Hopper: %+v, %v", older, err)
	}
	f.refuse = f.names[0]
	if _, err := c.prepare(nil); err == nil || f.here != 0 {
		t.Errorf("%s is refused: %v, %d left on the card", f.refuse, err, f.here)
	}
	f.refuse, c.cache = "", filepath.Join(c.cache, "none")
	if _, err := c.prepare(nil); err == nil || !strings.Contains(err.Error(), "keeps no kernels") {
		t.Errorf("a driver that keeps nothing: %v", err)
	}
	c.cache = ""
	if _, err := c.prepare(nil); err == nil || !strings.Contains(err.Error(), "CUDA_CACHE_DISABLE") {
		t.Errorf("a driver that is told to keep nothing: %v", err)
	}
}

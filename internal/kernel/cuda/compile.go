package cuda

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"haul/internal/cu"
	"haul/internal/kernel/cuda/bind"
)

// From PTX to code for the card. What a reader could break: kernels are compiled one by one, so no
// two may share a variable of their module (TestKernelsShareNothing), and a kernel's code depends
// on nothing but its own text. The driver compiles what it loads, several kernels at a time, and
// keeps it in its own cache.

// only is the module with one of its kernels.
func only(ptx []byte, kernel string) ([]byte, error) {
	var out []byte
	at, found := 0, false
	for _, e := range entriesOf(ptx) {
		end := bytes.Index(ptx[e.line:], []byte("\n}\n"))
		if end < 0 {
			return nil, fmt.Errorf("kernel %s has no end", e.name)
		}
		if end += e.line + len("\n}\n"); e.name == kernel {
			found = true
			continue
		}
		out = append(out, ptx[at:e.line]...)
		at = end
	}
	if !found {
		return nil, fmt.Errorf("no kernel %s", kernel)
	}
	return append(out, ptx[at:]...), nil
}

// part is one kernel on its way to the card.
type part struct {
	module, kernel string
	ptx            []byte
	declared       declaration
	loaded         cu.Module
}

func (p *part) name() string { return p.module + "." + p.kernel }

// compiler loads kernels on one card, on all cores.
type compiler struct {
	load     func(name string, ptx []byte) (cu.Module, error)
	unload   func(m cu.Module) error
	cache    string // where the driver keeps what it has compiled; "": nowhere
	hopper   bool
	overlaps bool
	workers  int
}

func newCompiler(driver *cu.Driver, ctx *cu.Context) compiler {
	return compiler{workers: runtime.GOMAXPROCS(0), hopper: isHopper(ctx.Device), overlaps: ctx.Device.Major >= overlapMajor && driver.Overlaps(),
		load: ctx.LoadAside, unload: ctx.UnloadAside, cache: cu.Cache()}
}

// texts are modules as the card takes them, each inflated once.
type texts struct {
	overlaps bool
	mu       sync.Mutex
	all      map[string]func() ([]byte, error)
}

func (t *texts) of(module string) ([]byte, error) {
	t.mu.Lock()
	f, ok := t.all[module]
	if !ok {
		f = sync.OnceValues(func() ([]byte, error) {
			text, err := image(module)
			if err == nil && t.overlaps {
				if text, err = overlapped(text); err != nil {
					err = fmt.Errorf("kernels %s: %w", module, err)
				}
			}
			return text, err
		})
		t.all[module] = f
	}
	t.mu.Unlock()
	return f()
}

// spread calls f for every part, on all cores, and returns the first error.
func (c *compiler) spread(parts []*part, f func(*part) error) error {
	var wg sync.WaitGroup
	queue, errs := make(chan *part, len(parts)), make(chan error, len(parts))
	for _, p := range parts {
		queue <- p
	}
	close(queue)
	for range max(1, min(c.workers, len(parts))) {
		wg.Go(func() {
			for p := range queue {
				if err := f(p); err != nil {
					errs <- err
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// find gives each part its text.
func (c *compiler) find(parts []*part) error {
	t := &texts{overlaps: c.overlaps, all: map[string]func() ([]byte, error){}}
	return c.spread(parts, func(p *part) error {
		text, err := t.of(p.module)
		if err == nil {
			p.ptx, err = only(text, p.kernel)
		}
		if err == nil {
			p.declared = declarationAt(p.ptx, entriesOf(p.ptx)[0].body)
		}
		if err != nil {
			return fmt.Errorf("kernels %s: %w", p.module, err)
		}
		return nil
	})
}

// compile loads parts that have their texts, the long ones first: the last to be compiled must not
// be the one that takes longest. progress hears one call at a time. Of a part that failed nothing
// is loaded; the others are.
func (c *compiler) compile(parts []*part, progress func(done int)) error {
	var mu sync.Mutex
	done := 0
	parts = slices.SortedStableFunc(slices.Values(parts), func(a, b *part) int { return cmp.Compare(len(b.ptx), len(a.ptx)) })
	return c.spread(parts, func(p *part) (err error) {
		p.loaded, err = c.load(p.name(), p.ptx)
		mu.Lock()
		defer mu.Unlock()
		done++
		progress(done)
		return err
	})
}

// A start that takes longer than this says why.
const quiet = time.Second

// fetch loads the kernels of some launches that are not loaded yet. On the context's thread.
func (d *Device) fetch(ls []bind.Launch) error {
	began := time.Now()
	var parts []*part
	named := map[string]bool{}
	for i := range ls {
		key := ls[i].Key()
		if _, ok := d.modules[key]; !ok && !named[key] {
			named[key] = true
			parts = append(parts, &part{module: ls[i].Module, kernel: ls[i].Kernel})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	err := d.compiler.find(parts)
	if err != nil {
		return err
	}
	err = d.compiler.compile(parts, func(int) {
		if d.note != nil && time.Since(began) > quiet {
			d.note(fmt.Sprintf("compiling kernels for %s, once (haul devices --prepare compiles all of them)", d.ctx.Name))
			d.note = nil
		}
	})
	for _, p := range parts {
		if p.loaded != 0 {
			d.modules[p.name()], d.declared[p.name()] = p.loaded, p.declared
		}
	}
	d.loadTime += time.Since(began)
	return err
}

// everyKernel lists all that is embedded and runs on the card.
func (c *compiler) everyKernel() ([]*part, error) {
	names, err := modules()
	if err != nil {
		return nil, err
	}
	var parts []*part
	for _, module := range names {
		text, err := image(module)
		if err != nil {
			return nil, err
		}
		if v := versionLine.FindSubmatch(text); v != nil && string(v[1]) == "sm_90a" && !c.hopper {
			continue
		}
		for _, e := range entriesOf(text) {
			parts = append(parts, &part{module: module, kernel: e.name})
		}
	}
	return parts, nil
}

// Prepared is what Prepare did.
type Prepared struct {
	Kernels int    `json:"kernels"` // that run on the card
	Folder  string `json:"folder"`  // the driver's, in which it keeps them
}

// Prepare compiles every kernel that the card can run and lets the driver keep the code, so that no
// later start has to. progress may be nil.
func (d *Device) Prepare(progress func(done, all int)) (Prepared, error) {
	return d.compiler.prepare(progress)
}

func (c *compiler) prepare(progress func(done, all int)) (Prepared, error) {
	out := Prepared{Folder: c.cache}
	if c.cache == "" {
		return out, errors.New("the driver keeps no kernels: set HOME, and not CUDA_CACHE_DISABLE")
	}
	parts, err := c.everyKernel()
	if err != nil {
		return out, err
	}
	if err := c.find(parts); err != nil {
		return out, err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	out.Kernels = len(parts)
	err = c.compile(parts, func(done int) { progress(done, len(parts)) })
	for _, p := range parts {
		if p.loaded != 0 {
			err = errors.Join(err, c.unload(p.loaded))
		}
	}
	if err != nil {
		return out, err
	}
	if _, err := os.Stat(c.cache); err != nil {
		return out, fmt.Errorf("the driver keeps no kernels: %w", err)
	}
	return out, nil
}

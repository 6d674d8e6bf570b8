package cuda

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"haul/internal/cu"
)

// From PTX to code for the card. What a reader could break: kernels are compiled one by one, so no
// two may share a variable of their module (TestKernelsShareNothing), and a kernel's code depends
// on nothing but its own text. What is kept is trusted as long as its name matches, a hash of that
// text, the driver's build and the card.

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
	code           []byte // what to load: for the card, or the PTX itself where that failed
	kept           bool   // the code was in the cache
}

func (p *part) name() string { return p.module + "." + p.kernel }

// compiler makes code for one card, on all cores, and keeps it.
type compiler struct {
	assemble func(name string, ptx []byte) ([]byte, error) // nil: this driver only loads PTX
	folder   string                                        // of what is kept; "": nothing is
	card     string                                        // and driver
	hopper   bool
	overlaps bool
	workers  int
}

func newCompiler(driver *cu.Driver, ctx *cu.Context) compiler {
	c := compiler{workers: runtime.GOMAXPROCS(0), hopper: isHopper(ctx.Device), overlaps: ctx.Device.Major >= overlapMajor && driver.Overlaps(),
		card: fmt.Sprintf("%s, compute capability %d.%d, %s", ctx.Name, ctx.Major, ctx.Minor, driver.Build())}
	if a, err := ctx.Assembler(); err == nil {
		c.assemble = a.Assemble
	}
	if dir, err := os.UserCacheDir(); err == nil {
		c.folder = filepath.Join(dir, "haul", "kernels")
	}
	return c
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

// spread calls f for every part, on all cores.
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
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// find gives each part its text, and its code where that is kept; it returns those without.
func (c *compiler) find(parts []*part) (missing []*part, err error) {
	t := &texts{overlaps: c.overlaps, all: map[string]func() ([]byte, error){}}
	err = c.spread(parts, func(p *part) error {
		text, err := t.of(p.module)
		if err == nil {
			p.ptx, err = only(text, p.kernel)
		}
		if err != nil {
			return fmt.Errorf("kernels %s: %w", p.module, err)
		}
		p.code, p.kept = c.read(p)
		return nil
	})
	for _, p := range parts {
		if !p.kept {
			missing = append(missing, p)
		}
	}
	// long texts first: the last to be compiled must not be the one that takes longest
	slices.SortStableFunc(missing, func(a, b *part) int { return cmp.Compare(len(b.ptx), len(a.ptx)) })
	return missing, err
}

// compile gives the parts code and keeps it. progress may be nil; it hears one call at a time.
func (c *compiler) compile(missing []*part, progress func(done int)) error {
	var mu sync.Mutex
	done := 0
	return c.spread(missing, func(p *part) error {
		p.code = p.ptx
		var err error
		if c.assemble != nil {
			var code []byte
			if code, err = c.assemble(p.name(), p.ptx); err == nil {
				p.code = code
				c.write(p)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if done++; progress != nil {
			progress(done)
		}
		return err
	})
}

// path is where a part's code is kept.
func (c *compiler) path(p *part) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", c.card, p.name())
	h.Write(p.ptx)
	return filepath.Join(c.folder, fmt.Sprintf("%x.cubin", h.Sum(nil)[:16]))
}

// read is code that was kept whole: a sum stands behind it.
func (c *compiler) read(p *part) ([]byte, bool) {
	if c.folder == "" {
		return nil, false
	}
	data, err := os.ReadFile(c.path(p))
	n := len(data) - sha256.Size
	if err != nil || n <= 0 {
		return nil, false
	}
	if sum := sha256.Sum256(data[:n]); !bytes.Equal(sum[:], data[n:]) {
		return nil, false
	}
	return data[:n], true
}

// write keeps code for the next start. A folder that cannot be written costs that start time, and
// nothing else.
func (c *compiler) write(p *part) {
	if c.folder == "" || os.MkdirAll(c.folder, 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(c.folder, "new-*")
	if err != nil {
		return
	}
	sum := sha256.Sum256(p.code)
	_, err = f.Write(append(bytes.Clone(p.code), sum[:]...))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path(p))
	}
	if err != nil {
		os.Remove(f.Name())
	}
}

// forget drops code that the driver did not take.
func (c *compiler) forget(p *part) { os.Remove(c.path(p)) }

// fetch loads the kernels of some launches that are not loaded yet, and compiles those that no
// earlier start has. On the context's thread.
func (d *Device) fetch(ls []launch) error {
	began := time.Now()
	var parts []*part
	named := map[string]bool{}
	for i := range ls {
		key := ls[i].key()
		if _, ok := d.modules[key]; !ok && !named[key] {
			named[key] = true
			parts = append(parts, &part{module: ls[i].module, kernel: ls[i].kernel})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	missing, err := d.compiler.find(parts)
	if err != nil {
		return err
	}
	if len(missing) > 1 && d.note != nil && d.compiler.assemble != nil {
		d.note(fmt.Sprintf("compiling %d kernels for %s, once (haul devices --prepare compiles all of them)", len(missing), d.ctx.Name))
		d.note = nil
	}
	// What cannot be compiled ahead is loaded as PTX: the driver's word on that is the better one.
	_ = d.compiler.compile(missing, nil)
	for _, p := range parts {
		m, err := d.ctx.Load(p.name(), p.code)
		if err != nil && p.kept {
			d.compiler.forget(p)
			m, err = d.ctx.Load(p.name(), p.ptx)
		}
		if err != nil {
			return err
		}
		d.modules[p.name()] = m
	}
	d.loadTime += time.Since(began)
	return nil
}

// everyKernel lists all that is embedded and runs on the card.
func (c *compiler) everyKernel() ([]*part, error) {
	files, err := fs.Glob(images, "ptx/*.ptx.zst")
	if err != nil {
		return nil, err
	}
	var parts []*part
	for _, f := range files {
		module := strings.TrimSuffix(strings.TrimPrefix(f, "ptx/"), ".ptx.zst")
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

// Prepared is what Prepare found and did.
type Prepared struct {
	Kernels  int    `json:"kernels"`  // that run on the card
	Compiled int    `json:"compiled"` // of them, by this call; the others were kept already
	Folder   string `json:"folder"`
}

// Prepare compiles every kernel that the card can run and keeps the code, so that no later start
// has to. progress may be nil.
func (d *Device) Prepare(progress func(done, all int)) (Prepared, error) {
	return d.compiler.prepare(progress)
}

func (c *compiler) prepare(progress func(done, all int)) (Prepared, error) {
	out := Prepared{Folder: c.folder}
	switch {
	case c.assemble == nil:
		return out, errors.New("this driver compiles kernels only while it loads them: nothing can be prepared")
	case c.folder == "":
		return out, errors.New("the machine names no folder to keep kernels in: set HOME or XDG_CACHE_HOME")
	}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return out, err
	}
	parts, err := c.everyKernel()
	if err != nil {
		return out, err
	}
	missing, err := c.find(parts)
	if err != nil {
		return out, err
	}
	out.Kernels, out.Compiled = len(parts), len(missing)
	if progress == nil {
		progress = func(int, int) {}
	}
	if err := c.compile(missing, func(done int) { progress(done, len(missing)) }); err != nil {
		return out, err
	}
	for _, p := range missing {
		if _, ok := c.read(p); !ok {
			return out, fmt.Errorf("kernel %s cannot be kept in %s", p.name(), c.folder)
		}
	}
	return out, nil
}

package cuda

import (
	"embed"
	"fmt"
	"time"

	"haul/internal/cu"
)

// images are the kernels, a module per file, as scripts/ptx makes them from src. They stay
// compressed until a program needs one.
//
//go:embed ptx/*.ptx.gz
var images embed.FS

// image is the PTX of a module.
func image(module string) ([]byte, error) {
	packed, err := images.ReadFile("ptx/" + module + ".ptx.gz")
	if err != nil {
		return nil, fmt.Errorf("no kernels named %s are embedded", module)
	}
	text, err := cu.Inflate(packed)
	if err != nil {
		return nil, fmt.Errorf("kernels %s: %w", module, err)
	}
	return text, nil
}

// module loads a set of kernels when a program first needs it: the driver compiles PTX for the card
// on a first start, which takes seconds per module, and a run needs few of them. On the context's
// thread.
func (d *Device) module(name string) (cu.Module, error) {
	if m, ok := d.modules[name]; ok {
		return m, nil
	}
	began := time.Now()
	ptx, err := image(name)
	if err != nil {
		return 0, err
	}
	if d.overlaps {
		if ptx, err = overlapped(ptx); err != nil {
			return 0, fmt.Errorf("kernels %s: %w", name, err)
		}
	}
	m, err := d.ctx.Load(name, ptx)
	if err == nil {
		d.modules[name] = m
		d.loadTime += time.Since(began)
	}
	return m, err
}

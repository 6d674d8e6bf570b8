package cu

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// fake returns a driver whose calls all return code, with the given name and description for it.
func fake(code Result, name, detail string) *Driver {
	text := func(s string) func(Result, *uintptr) Result {
		if s == "" {
			return func(Result, *uintptr) Result { return 1 }
		}
		b := append([]byte(s), 0)
		return func(_ Result, out *uintptr) Result {
			*out = uintptr(unsafe.Pointer(&b[0]))
			return 0
		}
	}
	return &Driver{
		cuDriverGetVersion: func(v *int32) Result { *v = 13020; return code },
		cuDeviceGetCount:   func(n *int32) Result { *n = 1; return code },
		cuDeviceGet:        func(h *int32, i int32) Result { *h = i; return code },
		cuDeviceGetName: func(p *byte, n int32, _ int32) Result {
			copy(unsafe.Slice(p, n), "Card X\x00")
			return code
		},
		cuDeviceTotalMem: func(b *uint64, _ int32) Result { *b = 1 << 36; return code },
		cuDeviceGetAttr:  func(v *int32, a, _ int32) Result { *v = a - 66; return code },
		cuGetErrorName:   text(name),
		cuGetErrorString: text(detail),
	}
}

func TestErrorCarriesTheDriversOwnName(t *testing.T) {
	for _, c := range []struct {
		name, detail, want string
	}{
		{"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected", "cuDeviceGetCount: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"},
		{"CUDA_ERROR_NO_DEVICE", "", "cuDeviceGetCount: CUDA_ERROR_NO_DEVICE (100)"},
		{"", "", "cuDeviceGetCount: CUDA error 100"},
	} {
		_, err := fake(100, c.name, c.detail).Devices()
		var typed *Error
		if !errors.As(err, &typed) || typed.Code != 100 || err.Error() != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestDevicesAreDescribed(t *testing.T) {
	d := fake(0, "", "")
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Device{Name: "Card X", MemoryBytes: 1 << 36, Major: 9, Minor: 10}); len(devices) != 1 || devices[0] != want {
		t.Errorf("got %+v, want one %+v", devices, want)
	}
	if major, minor, err := d.Version(); err != nil || major != 13 || minor != 2 {
		t.Errorf("version %d.%d, %v; want 13.2", major, minor, err)
	}
}

// Without a driver, Open returns a one-line error; with one, Devices lists its devices.
func TestOpenExplainsItself(t *testing.T) {
	d, err := Open()
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("the reason takes more than one line: %q", err)
		}
		t.Skipf("no GPU here: %v", err)
	}
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for i, dev := range devices {
		if dev.Name == "" || dev.MemoryBytes == 0 || dev.Ordinal != i {
			t.Errorf("device %d is described as %+v", i, dev)
		}
	}
}

// TestModulesAreLibraries: an image is loaded and unloaded as a library. If the driver has no
// libraries, or refuses this one at either call, it is loaded as a module, which reports errors in
// it, and the library is unloaded.
func TestModulesAreLibraries(t *testing.T) {
	for _, c := range []struct {
		name                 string
		none                 bool
		load, module, driver Result
		want                 Module
		calls                string
	}{
		{"a library", false, 0, 0, 0, 7, "library of PTX, module of 5, unload library 5"},
		{"no libraries", true, 0, 0, 0, 3, "module PTX, unload module 3"},
		{"a library is refused", false, 1, 0, 0, 3, "library of PTX, module PTX, unload module 3"},
		{"a library without a module", false, 0, 1, 0, 3, "library of PTX, module of 5, unload library 5, module PTX, unload module 3"},
		{"all is refused", false, 1, 0, 2, 0, "library of PTX, module PTX"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls []string
			called := func(words ...any) { calls = append(calls, strings.TrimSpace(fmt.Sprintln(words...))) }
			text := func(p unsafe.Pointer) string { return cString(uintptr(p)) }
			x := &Context{driver: fake(0, "NO", "no")}
			x.c.ModuleLoad = func(m *uintptr, image unsafe.Pointer, _ uint32, _ *int32, _ *uintptr) Result {
				called("module", text(image))
				*m = 3
				return c.driver
			}
			x.c.ModuleUnload = func(m uintptr) Result { called("unload module", m); return 0 }
			if !c.none {
				x.l = &libraryCalls{Load: func(lib *uintptr, code unsafe.Pointer, _ *int32, _ *uintptr, _ uint32, _ *int32, _ *uintptr, _ uint32) Result {
					called("library of", text(code))
					*lib = 5
					return c.load
				}, Module: func(m *uintptr, lib uintptr) Result {
					called("module of", lib)
					*m = 7
					return c.module
				}, Unload: func(lib uintptr) Result { called("unload library", lib); return 0 }}
			}
			m, err := x.Load("k", []byte("PTX"))
			if m != c.want || (err != nil) != (c.driver != 0) || err != nil && !strings.Contains(err.Error(), "load kernels k: cuModuleLoadDataEx") {
				t.Errorf("module %d, %v; want %d", m, err, c.want)
			}
			if err == nil {
				err = x.Unload(m)
			}
			if got := strings.Join(calls, ", "); got != c.calls || err != nil && c.driver == 0 {
				t.Errorf("%s (%v), want %s", got, err, c.calls)
			}
		})
	}
}

func TestCacheOfTheDriver(t *testing.T) {
	t.Setenv("HOME", "/home/x")
	for _, c := range []struct{ off, path, want string }{
		{"", "", "/home/x/.nv/ComputeCache"},
		{"0", "", "/home/x/.nv/ComputeCache"},
		{"0", "/elsewhere", "/elsewhere"},
		{"1", "/elsewhere", ""},
	} {
		t.Setenv("CUDA_CACHE_DISABLE", c.off)
		t.Setenv("CUDA_CACHE_PATH", c.path)
		if got := Cache(); got != c.want {
			t.Errorf("disabled %q, path %q: %q, want %q", c.off, c.path, got, c.want)
		}
	}
}

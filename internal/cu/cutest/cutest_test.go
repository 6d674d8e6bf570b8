package cutest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"haul/internal/cu"
	"haul/internal/cu/cutest"
)

// add writes words + by to out, one word per thread.
const add = `.version 7.5
.target sm_80
.address_size 64
.visible .entry add(
	.param .u64 add_param_0,
	.param .u64 add_param_1,
	.param .u32 add_param_2
)
{
	.reg .b32 %r<5>;
	.reg .b64 %rd<8>;
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %tid.x;
	mad.lo.s32 %r1, %r1, 32, %r2;
	ld.param.u64 %rd1, [add_param_0];
	ld.param.u64 %rd2, [add_param_1];
	ld.param.u32 %r3, [add_param_2];
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd2, %rd3;
	ld.global.u32 %r4, [%rd4];
	add.s32 %r4, %r4, %r3;
	add.s64 %rd5, %rd1, %rd3;
	st.global.u32 [%rd5], %r4;
	ret;
}
`

// opened returns a context of an interpreted GPU with the kernel and two buffers of 64 words. The
// first buffer is filled with sevens.
func opened(t *testing.T, gpu cutest.GPU) (c *cu.Context, f cu.Function, s cu.Stream, in, out uint64) {
	t.Helper()
	t.Cleanup(cutest.Install(gpu))
	d, err := cu.Open()
	if err != nil {
		t.Fatal(err)
	}
	if c, err = d.NewContext(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	m, err := c.LoadAside("add", []byte(add))
	if err != nil {
		t.Fatal(err)
	}
	do(t, c, func() (err error) {
		if f, err = c.Function(m, "add", 0); err != nil {
			return err
		}
		if s, err = c.NewStream(); err != nil {
			return err
		}
		if in, err = c.Alloc(256); err != nil {
			return err
		}
		if out, err = c.Alloc(256); err != nil {
			return err
		}
		return errors.Join(c.Fill(in, 7, 64, s), c.Fill(out, 0, 64, s))
	})
	return c, f, s, in, out
}

func do(t *testing.T, c *cu.Context, f func() error) {
	t.Helper()
	if err := c.Do(f); err != nil {
		t.Fatal(err)
	}
}

// last returns the last word of a buffer.
func last(t *testing.T, c *cu.Context, s cu.Stream, at uint64) uint32 {
	t.Helper()
	words := make([]byte, 256)
	do(t, c, func() error {
		return errors.Join(c.CopyOut(unsafe.Pointer(&words[0]), at, 256, s), c.Wait(s))
	})
	return binary.LittleEndian.Uint32(words[252:])
}

// TestLaunches: a kernel runs over its grid, alone and in a graph. The order of the graph's edges
// holds for both orders in which a GPU may start launches.
func TestLaunches(t *testing.T) {
	for _, late := range []bool{false, true} {
		c, f, s, in, out := opened(t, cutest.Hopper.With(true, late))
		if c.Device.Major != 9 || c.Device.Name != "interpreted sm_90a" {
			t.Errorf("the card is %+v", c.Device)
		}
		geometry := cu.Geometry{Grid: [3]int{2, 1, 1}, Block: [3]int{32, 1, 1}}
		args := func(to, from uint64, by uint32) *cu.Args {
			a, err := cu.PackArgs(to, from, by)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		do(t, c, func() error { return c.Launch(f, geometry, s, args(out, in, 5)) })
		if got := last(t, c, s, out); got != 12 {
			t.Errorf("7 + 5 = %d", got)
		}
		do(t, c, func() error {
			g, err := c.NewGraph()
			if err != nil {
				return err
			}
			first, err := g.Add(f, geometry, args(out, in, 1), nil)
			if err != nil {
				return err
			}
			second, err := g.AddOverlapping(f, geometry, args(out, out, 10), []cu.Node{first}, nil)
			if err != nil {
				return err
			}
			if _, err = g.Add(f, geometry, args(in, out, 100), []cu.Node{second}); err != nil {
				return err
			}
			e, err := g.Instantiate()
			if err != nil {
				return err
			}
			return errors.Join(e.Launch(s), c.Wait(s), e.Close())
		})
		if got := last(t, c, s, in); got != 7+1+10+100 {
			t.Errorf("late %v: three launches leave %d", late, got)
		}
		if cutest.Executed() == 0 {
			t.Error("no instruction is counted")
		}
	}
}

// TestAMissingEdgeShows: of unordered launches the last one runs first if Late is set.
func TestAMissingEdgeShows(t *testing.T) {
	for late, want := range map[bool]uint32{false: 18, true: 10} {
		c, f, s, in, out := opened(t, cutest.Ampere.With(false, late))
		do(t, c, func() error {
			g, err := c.NewGraph()
			if err != nil {
				return err
			}
			for i, from := range []uint64{in, out} {
				a, err := cu.PackArgs(out, from, []uint32{1, 10}[i])
				if err != nil {
					return err
				}
				if _, err := g.Add(f, cu.Geometry{Grid: [3]int{2, 1, 1}, Block: [3]int{32, 1, 1}}, a, nil); err != nil {
					return err
				}
			}
			e, err := g.Instantiate()
			if err != nil {
				return err
			}
			return e.Launch(s)
		})
		if got := last(t, c, s, out); got != want && !(late && got == 8) {
			t.Errorf("late %v: %d, want %d", late, got, want)
		}
	}
}

// TestFaultsReachTheCaller: a kernel's fault is in the driver's message and stays. Launches that no
// GPU accepts are errors too.
func TestFaultsReachTheCaller(t *testing.T) {
	for _, c := range []struct {
		name   string
		grid   int
		block  int
		shared int
		want   string
	}{
		{"a block too many", 3, 32, 0, "cuLaunchKernel add: CUDA_ERROR_ILLEGAL_ADDRESS (700): kernel add +16, block [2 0 0], thread [0 0 0]: ld.global.u32 reads outside of all allocations"},
		{"threads too many", 1, 1025, 0, "1025 threads in a block"},
		{"no threads", 1, 0, 0, "CUDA_ERROR_INVALID_VALUE"},
		{"shared memory that was not asked for", 1, 32, 48<<10 + 1, "it may have 49152"},
	} {
		x, f, s, in, out := opened(t, cutest.Ampere)
		a, err := cu.PackArgs(out, in, uint32(1))
		if err != nil {
			t.Fatal(err)
		}
		err = x.Do(func() error {
			return x.Launch(f, cu.Geometry{Grid: [3]int{c.grid, 1, 1}, Block: [3]int{c.block, 1, 1}, Shared: c.shared}, s, a)
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if again := x.Do(func() error { return x.Wait(s) }); (again != nil) != strings.Contains(fmt.Sprint(err), "700") {
			t.Errorf("%s: the next call says %v", c.name, again)
		}
	}
}

// TestImagesAreRefused: text that is not PTX, and code for another GPU, are errors.
func TestImagesAreRefused(t *testing.T) {
	c, _, _, _, _ := opened(t, cutest.Ampere)
	for text, want := range map[string]string{
		"nonsense": "\"nonsense\" is not known outside of a function",
		strings.Replace(add, "sm_80", "sm_90a", 1): "another card",
		strings.Replace(add, "ret;", "", 1):        "",
	} {
		_, err := c.LoadAside("add", []byte(text))
		if fmt.Sprint(err) == "<nil>" != (want == "") || !strings.Contains(fmt.Sprint(err), want) && want != "" {
			t.Errorf("%.20s: %v, want %q", text, err, want)
		}
	}
}

// TestMemoryIsCounted: freed memory is available again, and exceeding the memory is its own error.
func TestMemoryIsCounted(t *testing.T) {
	c, _, _, _, _ := opened(t, cutest.Ampere)
	do(t, c, func() error {
		before, total, err := c.MemInfo()
		if err != nil || total != uint64(cutest.Ampere.Memory) {
			t.Errorf("%d in all, %v", total, err)
		}
		p, err := c.Alloc(1000)
		if err != nil {
			return err
		}
		if free, _, _ := c.MemInfo(); free != before-1000 {
			t.Errorf("%d bytes are gone", before-free)
		}
		_, err = c.Alloc(cutest.Ampere.Memory)
		if e := new(cu.Error); !errors.As(err, &e) || e.Code != 2 {
			t.Errorf("more than there is: %v", err)
		}
		return c.Free(p)
	})
}

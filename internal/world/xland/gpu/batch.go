// Package gpu steps environments of XLand-MiniGrid on a GPU, one thread per environment. `haul
// bench worlds` measures it. Its results equal those of xland.Batch on a CPU bit by bit.
//
// The kernels' arguments and tables have the order and contents that src/xland.cuh declares. Only
// one goroutine may use a batch; its calls run on the thread of its CUDA context.
package gpu

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"haul/internal/cu"
	"haul/internal/rng"
	"haul/internal/world/xland"
)

// packed is the PTX of src/xland.cu, as scripts/ptx makes it.
//
//go:embed ptx/xland.ptx.zst
var packed []byte

// threads is the number of threads per block.
const threads = 128

// stateWords is the number of words of an environment's state: two words of the key, cell, clock,
// facing and pocket, number of finished episodes, number of episodes that reached the goal.
const stateWords = 7

// Batch is a set of environments on a GPU. If a step ends an episode, the same step begins the next
// one.
type Batch struct {
	ctx     *cu.Context
	stream  cu.Stream
	module  cu.Module
	begin   cu.Function
	step    cu.Function
	memory  []uint64
	n, view int
	args    []any // of both kernels

	views, paid, ended, state uint64
	actions                   uint64 // [uploaded steps, n]
	steps                     int    // number of uploaded steps
}

// New begins an environment of each task on the GPU with number `ordinal`. Environment i has key i
// of split(key, len(tasks)), as in xland.NewBatch.
func New(ordinal int, w xland.World, tasks []xland.ID, key rng.JAXKey) (*Batch, error) {
	different := slices.Compact(slices.Sorted(slices.Values(tasks)))
	tables, err := w.Tables(different)
	if err != nil {
		return nil, err
	}
	driver, err := cu.Open()
	if err != nil {
		return nil, err
	}
	ctx, err := driver.NewContext(ordinal)
	if err != nil {
		return nil, err
	}
	b := &Batch{ctx: ctx, n: len(tasks), view: w.View * w.View}
	state, task := make([]uint32, stateWords*b.n), make([]int32, b.n)
	for i, id := range tasks {
		k := key.Split(uint32(i))
		state[i], state[b.n+i] = k[0], k[1]
		at, _ := slices.BinarySearch(different, id)
		task[i] = int32(at)
	}
	if err := ctx.Do(func() error { return b.place(tables, state, task) }); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// place loads the kernels, uploads all data and draws the starts.
func (b *Batch) place(t *xland.Tables, state []uint32, task []int32) (err error) {
	ptx, err := cu.Inflate(packed)
	if err != nil {
		return err
	}
	if b.module, err = b.ctx.Load("xland", ptx); err != nil {
		return err
	}
	if b.stream, err = b.ctx.NewStream(); err != nil {
		return err
	}
	if b.begin, err = b.ctx.Function(b.module, "xland_start", 0); err != nil {
		return err
	}
	if b.step, err = b.ctx.Function(b.module, "xland_step", 0); err != nil {
		return err
	}
	var errs []error
	room := upload(b, &errs, t.Room)
	blank, rewards, can, programs := upload(b, &errs, t.Blank), upload(b, &errs, t.Rewards), upload(b, &errs, t.Can), upload(b, &errs, t.Programs)
	b.state = upload(b, &errs, state)
	tasks := upload(b, &errs, task)
	grids := b.alloc(&errs, b.n*len(t.Blank))
	b.views, b.paid, b.ended = b.alloc(&errs, b.n*b.view), b.alloc(&errs, 4*b.n), b.alloc(&errs, b.n)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	b.args = []any{b.views, b.paid, b.ended, b.state, grids, programs, tasks, room, blank, rewards, can, int32(b.n)}
	return b.launch(b.begin, b.args)
}

// alloc allocates GPU memory. The first error is kept in errs, and later calls do nothing.
func (b *Batch) alloc(errs *[]error, bytes int) uint64 {
	if len(*errs) > 0 {
		return 0
	}
	p, err := b.ctx.Alloc(bytes)
	if err != nil {
		*errs = append(*errs, fmt.Errorf("%d environments: %w", b.n, err))
		return 0
	}
	b.memory = append(b.memory, p)
	return p
}

// upload allocates memory and copies host into it.
func upload[T uint8 | int32 | uint32 | float32](b *Batch, errs *[]error, host []T) uint64 {
	bytes := len(host) * int(unsafe.Sizeof(host[0]))
	p := b.alloc(errs, bytes)
	if len(*errs) > 0 {
		return 0
	}
	err := b.ctx.CopyIn(p, unsafe.Pointer(unsafe.SliceData(host)), bytes, b.stream)
	if err == nil {
		err = b.ctx.Wait(b.stream)
	}
	if err != nil {
		*errs = append(*errs, err)
	}
	return p
}

// launch runs a kernel over all environments and waits for it.
func (b *Batch) launch(f cu.Function, args []any) error {
	packed, err := cu.PackArgs(args...)
	if err != nil {
		return err
	}
	g := cu.Geometry{Grid: [3]int{(b.n + threads - 1) / threads, 1, 1}, Block: [3]int{threads, 1, 1}}
	if err := b.ctx.Launch(f, g, b.stream, packed); err != nil {
		return err
	}
	return b.ctx.Wait(b.stream)
}

// Actions uploads the actions [steps, environments] of the next steps. An action must be less than
// xland.NumActions.
func (b *Batch) Actions(actions []uint8) error {
	if len(actions) == 0 || len(actions)%b.n != 0 || slices.Max(actions) >= xland.NumActions {
		panic("xland/gpu: an action for each environment and step, and none past the last")
	}
	return b.ctx.Do(func() error {
		var errs []error
		b.actions, b.steps = upload(b, &errs, actions), len(actions)/b.n
		return errors.Join(errs...)
	})
}

// Step takes the given number of uploaded actions from index `from` on, in one launch. It waits for
// the GPU.
func (b *Batch) Step(from, steps int) error {
	if from < 0 || steps < 1 || from+steps > b.steps {
		panic("xland/gpu: steps without actions")
	}
	return b.ctx.Do(func() error {
		return b.launch(b.step, append(slices.Clone(b.args), b.actions+uint64(from)*uint64(b.n), int32(steps)))
	})
}

// Seen copies the results of the last step: views [environment, row, column], rewards and ends. Nil
// arguments are skipped.
func (b *Batch) Seen(views []uint8, rewards []float32, ends []uint8) error {
	return b.ctx.Do(func() error {
		var errs []error
		if views != nil {
			errs = append(errs, b.ctx.CopyOut(unsafe.Pointer(unsafe.SliceData(views)), b.views, b.n*b.view, b.stream))
		}
		if rewards != nil {
			errs = append(errs, b.ctx.CopyOut(unsafe.Pointer(unsafe.SliceData(rewards)), b.paid, 4*b.n, b.stream))
		}
		if ends != nil {
			errs = append(errs, b.ctx.CopyOut(unsafe.Pointer(unsafe.SliceData(ends)), b.ended, b.n, b.stream))
		}
		return errors.Join(append(errs, b.ctx.Wait(b.stream))...)
	})
}

// Counts returns the number of finished episodes, and of episodes that reached the goal.
func (b *Batch) Counts() (episodes, goals int, err error) {
	state := make([]uint32, 2*b.n)
	err = b.ctx.Do(func() error {
		err := b.ctx.CopyOut(unsafe.Pointer(unsafe.SliceData(state)), b.state+uint64(4*5*b.n), 8*b.n, b.stream)
		return errors.Join(err, b.ctx.Wait(b.stream))
	})
	for i, v := range state {
		if i < b.n {
			episodes += int(v)
		} else {
			goals += int(v)
		}
	}
	return episodes, goals, err
}

// Close frees all memory.
func (b *Batch) Close() error {
	err := b.ctx.Do(func() error {
		var errs []error
		if b.stream != 0 {
			errs = append(errs, b.ctx.Wait(b.stream), b.ctx.FreeStream(b.stream))
		}
		for _, p := range b.memory {
			errs = append(errs, b.ctx.Free(p))
		}
		if b.module != 0 {
			errs = append(errs, b.ctx.Unload(b.module))
		}
		return errors.Join(errs...)
	})
	return errors.Join(err, b.ctx.Close())
}

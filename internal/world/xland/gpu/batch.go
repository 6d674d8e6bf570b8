// Package gpu steps environments of XLand-MiniGrid on a card, a thread each: what xland.Batch does
// on cores, number for number.
//
// What a reader could break: the order of the kernels' arguments and what the tables hold are those
// of src/xland.cuh. A batch belongs to one goroutine; its calls run on its context's own thread.
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

// threads is a block's.
const threads = 128

// stateWords are the numbers of an environment: key, key, cell, clock, facing and pocket, episodes
// that ended, those that ended with the goal.
const stateWords = 7

// Batch is environments on a card. An environment whose episode ends begins the next one in the
// same step.
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
	actions                   uint64 // [as many steps as were uploaded, n]
	steps                     int    // uploaded
}

// New begins an environment of each task on card number `ordinal`; environment i has key i of
// split(key, len(tasks)), as xland.NewBatch has it.
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

// place loads the kernels, puts everything into the card's memory, and draws the starts.
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

// alloc reserves bytes; the first error sticks.
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

// upload reserves memory and fills it.
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

// launch queues a kernel over all environments and waits for it.
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

// Actions uploads the actions [steps, environments] of steps to come; an action is below
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

// Step takes the uploaded actions from step `from` on, so many, in one launch. It waits for the
// card.
func (b *Batch) Step(from, steps int) error {
	if from < 0 || steps < 1 || from+steps > b.steps {
		panic("xland/gpu: steps without actions")
	}
	return b.ctx.Do(func() error {
		return b.launch(b.step, append(slices.Clone(b.args), b.actions+uint64(from)*uint64(b.n), int32(steps)))
	})
}

// Seen copies what the last step left: views [environment, row, column], rewards and ends. Parts
// that are nil are left out.
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

// Counts is how many episodes have ended, and how many of them with the goal.
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

// Close gives everything back.
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

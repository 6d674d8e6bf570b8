package plan

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
)

// toucher is an op that accesses given tensors.
type toucher struct {
	tensors []*kernel.Tensor
	access  []kernel.Access
}

func (o *toucher) Kind() string      { return "toucher" }
func (o *toucher) Cost() kernel.Cost { return kernel.Cost{} }
func (o *toucher) Args(f func(*kernel.Tensor, kernel.Access)) {
	for i, t := range o.tensors {
		f(t, o.access[i])
	}
}

// lives returns the first and the last op that access each shard tensor, independently of spansOf.
func lives(prog *kernel.Program) map[*kernel.Tensor][2]int {
	out := map[*kernel.Tensor][2]int{}
	for i, op := range prog.PerShard {
		op.Args(func(t *kernel.Tensor, _ kernel.Access) {
			if t = t.Root(); t.Space != kernel.Shard {
				return
			}
			life, ok := out[t]
			if !ok {
				life[0] = i
			}
			life[1] = i
			out[t] = life
		})
	}
	return out
}

// overlap names two tensors that are alive at the same op and share memory, or a tensor outside of
// the memory; "" if there are none.
func overlap(prog *kernel.Program) string {
	all := lives(prog)
	for a, x := range all {
		if a.Offset < 0 || a.Offset+a.Len() > prog.ShardLen {
			return fmt.Sprintf("%s lies at %d to %d of %d", a.Name, a.Offset, a.Offset+a.Len(), prog.ShardLen)
		}
		for b, y := range all {
			if a != b && x[0] <= y[1] && y[0] <= x[1] && a.Offset < b.Offset+b.Len() && b.Offset < a.Offset+a.Len() {
				return fmt.Sprintf("%s (ops %v, at %d, %d long) and %s (ops %v, at %d, %d long)", a.Name, x, a.Offset, a.Len(), b.Name, y, b.Offset, b.Len())
			}
		}
	}
	return ""
}

// TestLiveTensorsShareNoMemory: in any program, tensors that are alive at the same op do not
// overlap. Memory is reused: a chain of ops needs no more than its largest op.
func TestLiveTensorsShareNoMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := New("made", reference.New[float32](1), 1, 1, nil)
		var known []*kernel.Tensor
		for i := range rapid.IntRange(1, 25).Draw(t, "ops") {
			o := &toucher{}
			for _, k := range rapid.SliceOfN(rapid.IntRange(0, 1<<20), 0, 3).Draw(t, "read") {
				if len(known) > 0 {
					o.tensors, o.access = append(o.tensors, known[k%len(known)]), append(o.access, kernel.Read)
				}
			}
			made := p.Shard(fmt.Sprint("t", i), 1, rapid.IntRange(1, 70).Draw(t, "size"))
			known = append(known, made)
			o.tensors, o.access = append(o.tensors, made), append(o.access, kernel.Write)
			p.op(o)
		}
		if both := overlap(p.Program()); both != "" {
			t.Fatal("live together: " + both)
		}
	})
}

func TestMemoryIsUsedAgain(t *testing.T) {
	p := New("chain", reference.New[float32](1), 1, 1, nil)
	last := p.Shard("t0", 1, 64)
	p.op(&toucher{[]*kernel.Tensor{last}, []kernel.Access{kernel.Write}})
	for i := range 20 {
		next := p.Shard(fmt.Sprint("t", i+1), 1, 64)
		p.op(&toucher{[]*kernel.Tensor{last, next}, []kernel.Access{kernel.Read, kernel.Write}})
		last = next
	}
	if got := p.Program().ShardLen; got != 128 {
		t.Errorf("a chain whose links are 64 long takes %d, want the room of two", got)
	}
}

// TestReadingBeforeWriting: a program that reads a tensor before it is written panics with its
// name.
func TestReadingBeforeWriting(t *testing.T) {
	defer func() {
		if message := fmt.Sprint(recover()); !strings.Contains(message, "toucher reads x before anything wrote it") {
			t.Errorf("told %q", message)
		}
	}()
	p := New("odd", reference.New[float32](1), 1, 1, nil)
	p.op(&toucher{[]*kernel.Tensor{p.Shard("x", 1, 4)}, []kernel.Access{kernel.Read}})
	p.Program()
}

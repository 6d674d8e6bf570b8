package cuda

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// What a kernel stores through is read from its PTX, and what an op writes from its Args: a launch
// that passes an input where the kernel stores, or an output where it only loads, has exchanged two
// addresses, which types do not tell.

var (
	ptxLine    = regexp.MustCompile(`(?m)^\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s+([^;\n]*);`)
	ptxParam   = regexp.MustCompile(`_param_(\d+)\]`)
	ptxAddress = regexp.MustCompile(`%rd\d+`)
)

// storedThrough are the parameters of a kernel that it surely stores through: places of its
// arguments whose addresses, moved on by sums alone, end in a store of which they are the only
// origin.
func storedThrough(body string) map[int]bool {
	type move struct {
		to      string
		param   int // -1: none
		sources []string
	}
	var moves []move
	var stores []string // where to
	for _, l := range ptxLine.FindAllStringSubmatch(body, -1) {
		what, rest := l[1], l[2]
		if strings.HasPrefix(what, "st.") || strings.HasPrefix(what, "red.") || strings.HasPrefix(what, "atom.") {
			_, at, _ := strings.Cut(rest, "[")
			at, _, _ = strings.Cut(at, "]")
			stores = append(stores, ptxAddress.FindString(at))
			continue
		}
		to, from, _ := strings.Cut(rest, ",")
		if !strings.HasPrefix(to, "%rd") || strings.HasPrefix(what, "ld.") && !strings.HasPrefix(what, "ld.param") {
			continue
		}
		m := move{to, -1, ptxAddress.FindAllString(from, -1)}
		if p := ptxParam.FindStringSubmatch(from); p != nil {
			m.param, _ = strconv.Atoi(p[1])
		}
		moves = append(moves, m)
	}
	from := map[string]map[int]bool{}
	for changed := true; changed; { // a loop carries an address back to a line above
		changed = false
		take := func(to string, p int) {
			if from[to] == nil {
				from[to] = map[int]bool{}
			}
			changed = changed || !from[to][p]
			from[to][p] = true
		}
		for _, m := range moves {
			if m.param >= 0 {
				take(m.to, m.param)
			}
			for _, source := range m.sources {
				for p := range from[source] {
					take(m.to, p)
				}
			}
		}
	}
	stored := map[int]bool{}
	for _, at := range stores {
		if len(from[at]) == 1 {
			for p := range from[at] {
				stored[p] = true
			}
		}
	}
	return stored
}

var storesOfAll sync.Map // by "module.kernel"

func storesOf(t *testing.T, l bind.Launch) map[int]bool {
	t.Helper()
	if s, ok := storesOfAll.Load(l.Key()); ok {
		return s.(map[int]bool)
	}
	text, err := image(l.Module)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entriesOf(text) {
		if e.name == l.Kernel {
			body, _, _ := strings.Cut(string(text[e.body:]), "\n}\n")
			stores := storedThrough(body)
			storesOfAll.Store(l.Key(), stores)
			return stores
		}
	}
	t.Fatalf("%s: no such kernel", l.Key())
	return nil
}

// sometimes are parameters that a kernel stores through in some ways of working and an op passes
// what it only reads in others.
var sometimes = map[string]int{
	"tally.advantage": 3, // base: stored unless the base is given
}

// exchanged lists the addresses of tensors that an op only reads and a kernel of it stores through.
func exchanged(t *testing.T, address func(*kernel.Tensor) uint64, op kernel.Op, ls []bind.Launch) (out []string) {
	t.Helper()
	written, read := map[uint64]bool{}, map[uint64]string{}
	op.Args(func(x *kernel.Tensor, a kernel.Access) {
		if at := address(x); a == kernel.Read {
			read[at] = x.Name
		} else {
			written[at] = true
		}
	})
	for _, l := range ls {
		stores := storesOf(t, l)
		for i, a := range l.Args {
			if at, ok := sometimes[l.Key()]; ok && at == i {
				continue
			}
			at, ok := a.(uint64)
			if name := read[at]; ok && at != 0 && name != "" && !written[at] && stores[i] {
				out = append(out, l.Key()+" stores through argument "+strconv.Itoa(i+1)+", which is "+name+": the op only reads it")
			}
		}
	}
	return out
}

// TestExchangedAddressesAreFound: two addresses of a launch in each other's place are found by the
// kernel's name, the launch as it should be has none.
func TestExchangedAddressesAreFound(t *testing.T) {
	tensor := func(id int, name string, dims ...int) *kernel.Tensor {
		return &kernel.Tensor{ID: id, Name: name, Shape: dims, Stride: dims[len(dims)-1]}
	}
	y, x, w := tensor(1, "y", 64, 128), tensor(2, "x", 64, 128), tensor(3, "w", 128, 128)
	op := &kernel.Linear{Y: y, X: x, W: w}
	address := func(t *kernel.Tensor) uint64 { return uint64(t.ID) << 20 }
	l := bind.Launch{Module: "linear_tf32", Kernel: "linear_large", Args: []any{address(y), address(x), address(w), uint64(0), uint64(0)}}
	if got := exchanged(t, address, op, []bind.Launch{l}); got != nil {
		t.Errorf("found %q", got)
	}
	l.Args[0], l.Args[1] = l.Args[1], l.Args[0]
	want := []string{"linear_tf32.linear_large stores through argument 1, which is x: the op only reads it"}
	if got := exchanged(t, address, op, []bind.Launch{l}); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

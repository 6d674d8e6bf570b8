package memory

import (
	"cmp"
	"slices"
)

// Kind is the purpose of a block, judged by its allocation and its lifetime.
type Kind uint8

// The kinds of blocks, in the order in which reports list them.
const (
	Before     Kind = iota // in use before the recording began: parameters, mostly
	Gradient               // asked for in a backward pass and kept after it
	State                  // asked for in an optimizer's step and kept after it
	Activation             // asked for in a forward pass and kept after it
	Temporary              // released in the pass that asked for it
	Workspace              // kept by cuBLAS
	kinds
)

func (k Kind) String() string {
	return [...]string{
		"in use before the recording (parameters, mostly)", "gradients", "optimizer state",
		"activations kept for the backward pass", "temporaries of one pass", "cuBLAS workspace",
	}[k]
}

// classify gives every block its kind. A pass is a run of allocations of one phase; a block that is
// in use when its pass ends was kept.
func (r *replayed) classify() {
	end := r.passEnds()
	for i := range r.uses {
		u := &r.uses[i]
		switch {
		case u.From < 0:
			u.Kind = Before
		case u.Site != nil && u.Site.Workspace:
			u.Kind = Workspace
		case u.To <= end[u.From]:
			u.Kind = Temporary
		default:
			u.Kind = [...]Kind{Forward: Activation, Backward: Gradient, Optimizer: State}[u.phase()]
		}
	}
}

func (u *Usage) phase() Phase {
	if u.Site == nil {
		return Forward
	}
	return u.Site.Phase
}

// passEnds returns for every event the event at which its pass ends: the first allocation of
// another phase, or the last event of the recording.
func (r *replayed) passEnds() []int {
	ends := make([]int, len(r.Events))
	next, phase := len(r.Events)-1, Phase(255)
	for i := len(r.Events) - 1; i >= 0; i-- {
		if e := r.Events[i]; e.Action == Alloc && !(e.Site != nil && e.Site.Workspace) {
			p := Forward
			if e.Site != nil {
				p = e.Site.Phase
			}
			if phase == 255 {
				phase = p
			}
			if p != phase {
				next, phase = i+1, p
			}
		}
		ends[i] = next
	}
	return ends
}

// Holding is the memory of one kind of blocks, or of one place in the code, at the peak.
type Holding struct {
	Name   string  `json:"name"`
	MiB    float64 `json:"mib"`
	Blocks int     `json:"blocks"`
}

// holdings adds up the blocks in use after an event, by kind and by place, the largest first.
func (r *replayed) holdings(event int) (byKind, byPlace []Holding) {
	list := make([]Holding, kinds)
	places := map[string]*Holding{}
	for i := range r.uses {
		u := &r.uses[i]
		if !u.inUse(event) {
			continue
		}
		add(&list[u.Kind], u)
		if u.From < 0 {
			continue
		}
		name := noStack
		if u.Site != nil {
			name = u.Site.Place
		}
		if places[name] == nil {
			places[name] = &Holding{Name: name}
		}
		add(places[name], u)
	}
	for k, h := range list {
		if h.Blocks > 0 {
			h.Name = Kind(k).String()
			byKind = append(byKind, h)
		}
	}
	for _, h := range places {
		byPlace = append(byPlace, *h)
	}
	slices.SortFunc(byPlace, func(x, y Holding) int {
		return cmp.Or(cmp.Compare(y.MiB, x.MiB), cmp.Compare(x.Name, y.Name))
	})
	return byKind, byPlace
}

func add(h *Holding, u *Usage) {
	h.MiB += mib(float64(u.Size))
	h.Blocks++
}

func mib(bytes float64) float64 { return bytes / (1 << 20) }

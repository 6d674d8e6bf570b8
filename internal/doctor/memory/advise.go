package memory

import (
	"fmt"
	"slices"
)

// Where the findings' thresholds come from: a finding is worth a line if it frees a twentieth of
// the peak. Lower precision of the parameters changes results, so that it counts half compared with
// waste. One block cannot be computed anew instead of being kept, so checkpointing wants several.
const (
	leastShare   = 0.05
	choiceWeight = 0.5
	severalKept  = 8
)

// advise lists what would lower the peak. The saving of each is a replay of the recording with the
// blocks concerned left out or halved, so that it never passes what the peak allows.
func advise(rep *Report) []Finding {
	r := rep.r
	event, bytes := r.peak()
	peak := float64(bytes)
	var out []Finding
	try := func(f Finding, weight float64, keep func(u *Usage) float64) {
		f.Saves = mib(peak - r.peakIf(keep))
		f.weight = weight * f.Saves
		if f.Saves >= leastShare*rep.Peak {
			out = append(out, f)
		}
	}
	without := func(drop func(u *Usage) bool, share float64) func(u *Usage) float64 {
		return func(u *Usage) float64 {
			if drop(u) {
				return float64(u.Size) * share
			}
			return float64(u.Size)
		}
	}
	held := func(k Kind) string {
		h := rep.kind(k)
		return fmt.Sprintf("%s: %s MiB in %s at the peak", k, Size(h.MiB), blocks(h.Blocks))
	}

	lasting := func(u *Usage) bool { return u.Kind == Before || u.Kind == Gradient || u.Kind == State }
	state := Finding{ID: "bytes-per-parameter", Choice: true, Remedy: "keep parameters and gradients in bfloat16 and the optimizer's state in bfloat16 or 8 bits, or share them among GPUs (FSDP, ZeRO); activation checkpointing does not touch them"}
	for _, k := range []Kind{Before, Gradient, State} {
		if rep.kind(k).Blocks > 0 {
			state.Evidence = append(state.Evidence, held(k))
		}
	}
	if rep.kind(Gradient).Blocks+rep.kind(State).Blocks == 0 {
		state.Remedy = "load the model in half precision (torch_dtype=torch.bfloat16), which halves everything that follows from it"
	}
	if rep.kind(Before).MiB+rep.kind(Gradient).MiB+rep.kind(State).MiB >= rep.Peak/2 {
		try(state, choiceWeight, without(lasting, 0.5))
	}

	activations := func(u *Usage) bool { return u.Kind == Activation }
	switch h := rep.kind(Activation); {
	case h.Blocks < severalKept:
	case r.has(Backward):
		try(Finding{ID: "activations", Choice: true, Evidence: []string{held(Activation)},
			Remedy: "checkpoint activations (torch.utils.checkpoint), or make the batch or the sequence smaller; the saving is what is left if none were kept"},
			1, without(activations, 0))
	default:
		try(Finding{ID: "graph-kept", Evidence: []string{held(Activation), "no backward pass was recorded"},
			Remedy: "run a forward pass alone under torch.no_grad() or torch.inference_mode(); if a backward pass follows, checkpoint activations"},
			1, without(activations, 0))
	}

	if place, n, drop := r.lossBuffers(event); n > 1 {
		try(Finding{ID: "loss-buffers", Evidence: []string{fmt.Sprintf("%d buffers as large as the logits are in use at the peak, asked for by %s", n, place)},
			Remedy: "use a cross entropy that writes the gradient over the logits (fused), or compute it in chunks of rows (a linear and cross entropy in one)"},
			1, without(drop, 0))
	}
	if at, name, drop := r.outputHeld(event); at > 0 {
		try(Finding{ID: "result-held", Evidence: []string{fmt.Sprintf("%s MiB of %s from an earlier pass are in use while the next pass asks for as much again", Size(mib(float64(at))), name)},
			Remedy: "delete the result before the next pass (del output), or keep the numbers that are needed"},
			1, without(drop, 0))
	}
	temporaries := func(u *Usage) bool { return u.Kind == Temporary && u.phase() == Optimizer }
	try(Finding{ID: "optimizer-temporaries", Evidence: []string{held(Temporary)},
		Remedy: "use a fused optimizer (fused=True), or foreach=False, which needs temporaries for one tensor at a time"},
		1, without(temporaries, 0))

	if f := (Finding{ID: "fragmentation", Saves: rep.FreeWhole}); rep.Unused() >= leastShare*rep.Reserved && f.Saves > 0 {
		f.Evidence = []string{
			fmt.Sprintf("%s of %s MiB reserved are unused at the peak, the largest free piece has %s MiB", Size(rep.Unused()), Size(rep.Reserved), Size(rep.FreeBlock)),
			fmt.Sprintf("%s MiB of them are whole segments that later requests do not fit into", Size(rep.FreeWhole)),
		}
		f.Remedy = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
		f.weight = choiceWeight * f.Saves
		if f.Saves >= leastShare*rep.Peak {
			out = append(out, f)
		}
	}
	if rep.OutOfMemory > 0 || rep.Retries > 1 {
		f := Finding{ID: "out-of-memory", Remedy: "lower the peak by the other findings; each retry waits for the GPU and asks the driver again"}
		if rep.Retries > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("the driver refused memory %d times, and the cache was emptied", rep.Retries))
		}
		if rep.OutOfMemory > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%d requests ended in an out-of-memory error", rep.OutOfMemory))
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(x, y Finding) int {
		if x.weight != y.weight {
			return map[bool]int{true: -1, false: 1}[x.weight > y.weight]
		}
		return 0
	})
	return out
}

// has reports whether the recording holds an allocation of a phase.
func (r *replayed) has(p Phase) bool {
	return slices.ContainsFunc(r.Events, func(e Event) bool { return e.Action == Alloc && e.Site != nil && e.Site.Phase == p })
}

// lossBuffers finds the buffers between logits and loss that are in use after an event: those asked
// for by a loss function, or by its gradient, of the largest size among them.
func (r *replayed) lossBuffers(event int) (place string, n int, drop func(u *Usage) bool) {
	var largest uint64
	for i := range r.uses {
		if u := &r.uses[i]; u.inUse(event) && u.Site != nil && u.Site.Loss {
			largest = max(largest, u.Size)
		}
	}
	drop = func(u *Usage) bool { return u.Site != nil && u.Site.Loss && u.Size == largest }
	for i := range r.uses {
		if u := &r.uses[i]; u.inUse(event) && drop(u) {
			n++
			if place == "" {
				place = u.Site.Place
			}
		}
	}
	return place, n, drop
}

// outputHeld finds the largest block in use after an event that the same line replaces later: the
// line asks for another block of that size while the old one is in use, and the old one is released
// soon afterwards, as happens when a variable is assigned anew.
func (r *replayed) outputHeld(event int) (bytes uint64, place string, drop func(u *Usage) bool) {
	last := map[string]*Usage{}
	held := map[*Usage]bool{}
	for i := range r.uses {
		u := &r.uses[i]
		if u.Site == nil || u.From < 0 || u.Kind == Workspace || u.Kind == Gradient || u.Kind == State {
			continue
		}
		key := fmt.Sprint(u.Site.Place, u.Size)
		if old := last[key]; old != nil && old.To > u.From && old.To < u.To && old.To-u.From < (u.From-old.From)/8 {
			held[old] = true
			if old.inUse(event) && old.Size > bytes {
				bytes, place = old.Size, u.Site.Place
			}
		}
		last[key] = u
	}
	return bytes, place, func(u *Usage) bool { return held[u] && u.Size == bytes }
}

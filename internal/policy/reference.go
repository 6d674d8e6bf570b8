package policy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"haul/internal/comm"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/safetensors"
	"haul/internal/search"
	"haul/internal/vrp"
)

// A cached cost is used if its key matches. The key contains everything that the costs depend on.
// referenceVersion must be raised whenever the results of a solver change.

const referenceVersion = 3

// ExactLimit is the largest number of customers for which every instance is solved to the optimum.
const ExactLimit = 12

// The methods of reference costs.
const (
	Optimum = "optimum"
	Search  = "search" // and Nearest, of problem files
)

// References holds the costs that a gap is measured against.
type References struct {
	Costs  []float64 // NaN if the time did not suffice for an instance
	Method string    // Optimum or Search
}

// Known returns the number of costs that are known.
func (r *References) Known() int {
	n := 0
	for _, c := range r.Costs {
		if !math.IsNaN(c) {
			n++
		}
	}
	return n
}

// Pairs returns the lengths of the instances with a known cost, and these costs.
func (r *References) Pairs(lengths []float64) (known, costs []float64) {
	if r.Known() == len(r.Costs) {
		return lengths, r.Costs
	}
	for i, c := range r.Costs {
		if !math.IsNaN(c) {
			known, costs = append(known, lengths[i]), append(costs, c)
		}
	}
	return known, costs
}

// ReferenceMethod returns the method for a source's instances.
func ReferenceMethod(src vrp.Source) string {
	if src.File != "" {
		return Nearest
	}
	if src.N <= ExactLimit && src.Plain() {
		return Optimum
	}
	return Search
}

// Reference returns the costs of the source's first count instances: optima up to ExactLimit
// customers, else the results of searches of SearchIterations. Costs are computed once and cached
// in the user's cache folder. A cache that cannot be read or written only costs time. workers 0
// means all cores. note reports long work and may be nil.
func Reference(ctx context.Context, src vrp.Source, count, workers int, note func(string)) (*References, error) {
	return referenceWithin(ctx, src, count, workers, 0, note)
}

// referenceWithin is Reference with a time limit: it starts no search after `within`, if that is
// above 0.
func referenceWithin(ctx context.Context, src vrp.Source, count, workers int, within time.Duration, note func(string)) (*References, error) {
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	if note == nil {
		note = func(string) {}
	}
	r := &References{Costs: make([]float64, count), Method: ReferenceMethod(src)}
	path, key := referencePath(src, count, r.Method)
	if path != "" && readReference(path, key, r.Costs) == nil {
		return r, nil
	}
	if err := solveReferences(ctx, src, 0, r.Costs, r.Method, workers, within, note); err != nil {
		return nil, err
	}
	r.keep(path, key, within, note)
	return r, nil
}

// SharedReference is Reference on all ranks at once: rank 0 reads its cache, and the ranks share
// the other instances. No search starts later than `within` after the call, by rank 0's clock; 0:
// no limit.
func SharedReference(ctx context.Context, w *comm.World, src vrp.Source, count, workers int, within time.Duration, note func(string)) (*References, error) {
	if w == nil {
		return referenceWithin(ctx, src, count, workers, within, note)
	}
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	r := &References{Costs: make([]float64, count), Method: ReferenceMethod(src)}
	path, key := referencePath(src, count, r.Method)
	var found []byte
	if w.Number() == 0 && path != "" && readReference(path, key, r.Costs) == nil {
		found, _ = binary.Append(nil, binary.LittleEndian, r.Costs)
	}
	found, err := w.Broadcast(found)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		_, err := binary.Decode(found, binary.LittleEndian, r.Costs)
		return r, err
	}
	said, err := w.Broadcast(binary.LittleEndian.AppendUint64(nil, uint64(within)))
	if err != nil {
		return nil, err
	}
	within = time.Duration(binary.LittleEndian.Uint64(said))
	from, to := w.Cut(count)
	err = solveReferences(w.Soon(ctx), src, from, r.Costs[from:to], r.Method, workers, within, note)
	if err != nil && !w.Asked() {
		return nil, err
	}
	if err := w.Collect(r.Costs, slices.Clone(r.Costs[from:to]), err != nil); err != nil {
		return nil, err
	}
	if w.Number() == 0 {
		r.keep(path, key, within, note)
	}
	return r, nil
}

// solveReferences solves len(out) instances, beginning with number first.
func solveReferences(ctx context.Context, src vrp.Source, first int, out []float64, method string, workers int, within time.Duration, note func(string)) error {
	report := progressNotes(note, fmt.Sprintf("solving %d instances of %d customers (%s), once", len(out), src.N, method), len(out))
	switch method {
	case Nearest:
		nearestCosts(src, first, out)
		return nil
	case Optimum:
		return vrp.OptimalCosts(ctx, src, uint64(first), len(out), workers, out, report)
	}
	var until time.Time
	if within > 0 {
		until = time.Now().Add(within)
	}
	return searchCosts(ctx, src, first, workers, until, out, report, note)
}

// keep caches a complete set of costs, and reports by a note if costs are missing.
func (r *References) keep(path, key string, within time.Duration, note func(string)) {
	if n := r.Known(); n < len(r.Costs) {
		note(fmt.Sprintf("%d of %d reference costs are known after %s, a share of the run's time: gaps are over these instances; the next run solves more",
			n, len(r.Costs), within.Round(time.Millisecond)))
		return
	}
	if path == "" {
		return
	}
	if err := writeReference(path, key, r.Costs); err != nil {
		note(fmt.Sprintf("these costs could not be cached and will be solved again: %v", err))
	}
}

// Work shorter than noteAfter is not reported; longer work is reported once per noteEvery.
const (
	noteAfter = time.Second
	noteEvery = 5 * time.Second
)

func progressNotes(note func(string), what string, count int) func(done int) {
	began := time.Now()
	next := began.Add(noteAfter)
	return func(done int) {
		if now := time.Now(); now.After(next) {
			next = now.Add(noteEvery)
			left := now.Sub(began).Seconds() * float64(count-done) / float64(done)
			note(fmt.Sprintf("%s: %d%%, %s left", what, 100*done/count, report.Duration(left)))
		}
	}
}

// SearchIterations returns the iterations of a search for an instance of n customers: about 40 ms
// on one core at n = 100. On instances of Kool's distribution its costs are 0.6 % above HGS at n =
// 50 and 1.3 % at n = 100 on average (docs/benchmarks.md).
func SearchIterations(n int) int { return 200 * n }

// searchCosts is OptimalCosts by search. It caches each cost at once, so that an interrupted run
// continues with the remaining instances.
func searchCosts(ctx context.Context, src vrp.Source, first, workers int, until time.Time, out []float64, progress func(int), note func(string)) error {
	problems := make([]*vrp.Problem, len(out))
	const chunk = 256
	batch := vrp.NewBatch(chunk, src.N, src.Capacity)
	for at := 0; at < len(out); at += chunk {
		src.Fill(batch, uint64(first+at))
		for i := range min(chunk, len(out)-at) {
			problems[at+i] = batch.Problem(i)
		}
	}
	costs, err := search.References(ctx, problems, search.ReferenceOptions{Iterations: SearchIterations(src.N), Workers: workers, Until: until, Cache: search.CacheDir(), Progress: progress, Warn: note})
	copy(out, costs)
	return err
}

// referencePath returns the path of the cached costs, "" if the system has no cache folder.
func referencePath(src vrp.Source, count int, method string) (path, key string) {
	text, err := json.Marshal(struct {
		Version int
		Source  vrp.Source
		Count   int
		Method  string
	}{referenceVersion, src, count, method})
	dir, dirErr := os.UserCacheDir()
	if err != nil || dirErr != nil {
		return "", ""
	}
	sum := sha256.Sum256(text)
	return filepath.Join(dir, "haul", "references", fmt.Sprintf("%x.safetensors", sum[:12])), string(text)
}

const (
	referenceKey   = "haul.reference"
	referenceCosts = "costs"
)

func readReference(path, key string, costs []float64) error {
	f, err := safetensors.Load(path)
	if err != nil {
		return err
	}
	t, ok := f.Tensor(referenceCosts)
	if !ok || f.Metadata[referenceKey] != key {
		return fmt.Errorf("%s holds other costs", path)
	}
	return t.ReadFloat64s(costs)
}

func writeReference(path, key string, costs []float64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Two processes may solve the same set: each writes a separate file, and the last rename wins.
	own := fmt.Sprintf("%s.%d", path, os.Getpid())
	f := &safetensors.File{Metadata: map[string]string{referenceKey: key}, Tensors: []safetensors.Tensor{safetensors.Float64s(referenceCosts, costs, len(costs))}}
	if err := run.WriteAtomic(own, func(w io.Writer) error { return safetensors.Write(w, f) }); err != nil {
		return err
	}
	return os.Rename(own, path)
}

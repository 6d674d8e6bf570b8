package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"haul/internal/npy"
	"haul/internal/rng"
	"haul/internal/world"
)

// An import reads its arrays twice, in chunks of all arrays together, so that they may be larger
// than memory. The first pass checks every number and determines the space. The second pass writes.

// The accepted names of arrays.
var (
	observationNames = []string{"observations", "states", "obs", "observation"}
	actionNames      = []string{"actions", "action"}
	rewardNames      = []string{"rewards", "reward"}
	endNames         = []string{"dones", "terminals", "terminations", "done", "terminated"}
	cutNames         = []string{"truncations", "timeouts", "truncated"} // time limits, with or without ends
	taskNames        = []string{"tasks", "task"}
	streamNames      = []string{"streams", "stream"}
	bestNames        = []string{"best_actions", "expert_actions"} // labels
)

// ImportOptions configures the source, the world and the file of an import.
type ImportOptions struct {
	From, To   string
	Title      string // of the world; empty: the base name of From
	Actions    int    // 0: the largest action plus one
	Sizes      []int  // number of values of each field of whole numbers; nil: the largest value plus one
	SplitSeed  uint64
	TrainRatio float64
	Progress   func(done, of int) // counts transitions; may be nil
	Note       func(line string)  // receives what was not read or was changed; may be nil
}

// Limits on levels of real-valued fields and of rewards: a byte can hold this many.
const (
	fieldLevels  = 256
	rewardLevels = 64
	reservoir    = 1 << 16 // numbers per field that quantiles are computed from
	chunkRows    = 4096    // transitions per chunk
)

// Import converts NumPy arrays to a file of histories. If the arrays are invalid, it returns a
// one-line error and leaves no file.
func Import(ctx context.Context, o ImportOptions) error {
	set, err := npy.Open(o.From)
	if err != nil {
		return fmt.Errorf("import %s: %w", o.From, bare(err))
	}
	defer set.Close()
	if o.Title == "" {
		base := filepath.Base(filepath.Clean(o.From))
		o.Title = strings.TrimSuffix(base, filepath.Ext(base))
	}
	im := &importer{o: o, set: set}
	if err := im.measure(ctx); err != nil {
		return fmt.Errorf("import %s: %w", o.From, err)
	}
	if o.Note != nil {
		for _, line := range im.notes() {
			o.Note(line)
		}
	}
	w, err := CreateRecords(o.To, im.world, o.SplitSeed, o.TrainRatio)
	if err != nil {
		return err
	}
	defer w.Discard()
	if err := im.write(ctx, w); err != nil {
		return fmt.Errorf("import %s: %w", o.From, err)
	}
	if line := w.part(); line != "" && o.Note != nil {
		o.Note(line)
	}
	return w.Close()
}

type importer struct {
	o     ImportOptions
	set   *npy.Set
	world world.Recorded

	rewards []float64 // the reward values or, if there are too many, the edges between levels
	binned  bool
	cut     int // number of fields with more values than levels

	streams int // number of pairs of a task and a stream number
	apart   int // number of these pairs with rows that are not contiguous
	open    int // number of pieces, except the last, whose last episode does not end
}

// notes returns notes on arrays that were not read and on fields that were divided into levels.
func (im *importer) notes() (out []string) {
	read := map[string]bool{}
	for _, names := range [][]string{observationNames, actionNames, rewardNames, endNames, cutNames, taskNames, streamNames, bestNames} {
		for _, n := range names {
			if slices.Contains(im.set.Names(), n) {
				read[n] = true
				break
			}
		}
	}
	var left []string
	for _, n := range im.set.Names() {
		if !read[n] {
			left = append(left, n)
		}
	}
	if left != nil {
		out = append(out, "not read: "+strings.Join(left, ", "))
	}
	if im.cut > 0 {
		out = append(out, fmt.Sprintf("%d of %d fields of the observations have more than %d different numbers: each of these is cut into at most %d levels by quantiles",
			im.cut, len(im.world.Declared.Fields), fieldLevels, fieldLevels))
	}
	if im.binned {
		out = append(out, fmt.Sprintf("the rewards have more than %d different values: they are cut into %d levels, each of which counts as its mean", world.MaxRewards, len(im.world.Declared.Rewards)))
	}
	if im.apart > 0 {
		line := fmt.Sprintf("the rows of %d of %d streams do not lie together: each piece is taken for a learner of its own", im.apart, im.streams)
		if im.open > 0 {
			line += fmt.Sprintf(", and %d pieces end within an episode", im.open)
		}
		out = append(out, line+"; sort the rows by task and stream to join them")
	}
	return out
}

// sizeless returns an error if observations do not fit the given sizes.
func (im *importer) sizeless(float bool, r *row, field int) error {
	switch {
	case float:
		return errors.New("--sizes are of fields of whole numbers: these observations are floating point")
	case len(im.o.Sizes) != len(r.seen):
		return fmt.Errorf("--sizes names %d fields, the observations have %d", len(im.o.Sizes), len(r.seen))
	}
	return fmt.Errorf("the observation of transition %d has %v in field %d: --sizes has %d for it, values 0 to %d", r.at, r.seen[field], field, im.o.Sizes[field], im.o.Sizes[field]-1)
}

// has reports whether an array with one of these names exists.
func (im *importer) has(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(im.set.Names(), n) })
}

// row is one transition of the arrays.
type row struct {
	at           int
	seen         []float64
	action       float64
	reward       float64
	ends         bool
	task, stream float64
	best         float64 // if the arrays contain it
}

// each calls f for every transition, in order.
func (im *importer) each(ctx context.Context, pass int, f func(r *row) error) error {
	columns := []struct {
		names    []string
		optional bool
	}{{observationNames, false}, {actionNames, false}, {rewardNames, false}, {endNames, im.has(cutNames)}, {cutNames, true}, {taskNames, true}, {streamNames, true}, {bestNames, true}}
	arrays := make([]*npy.Array, len(columns))
	for i, c := range columns {
		a, err := im.set.Array(c.names...)
		if errors.Is(err, fs.ErrNotExist) && c.optional {
			continue
		}
		if err != nil {
			return err
		}
		defer a.Close()
		arrays[i] = a
		if len(a.Shape) == 0 || i > 0 && a.Cols() != 1 {
			return fmt.Errorf("%s has the shape %s: want one number for each transition", a.Name, a.Axes())
		}
		if a.Rows() != arrays[0].Rows() {
			return fmt.Errorf("%s has %d rows, %s has %d: want one for each transition", a.Name, a.Rows(), arrays[0].Name, arrays[0].Rows())
		}
	}
	n, width := arrays[0].Rows(), arrays[0].Cols()
	if n == 0 || width < 1 || width > world.MaxFields {
		return fmt.Errorf("%s has the shape %s: want at least one transition of 1 to %d fields", arrays[0].Name, arrays[0].Axes(), world.MaxFields)
	}
	values := make([][]float64, len(columns))
	for i, a := range arrays {
		if a != nil {
			values[i] = make([]float64, chunkRows*a.Cols())
		}
	}
	r := row{seen: make([]float64, width)}
	for done := 0; done < n; done += chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := min(chunkRows, n-done)
		for i, a := range arrays {
			if a != nil {
				if err := a.Next(values[i][:m*a.Cols()]); err != nil {
					return err
				}
			}
		}
		for k := range m {
			r.at, r.seen = done+k, values[0][k*width:][:width]
			r.action, r.reward, r.ends = values[1][k], values[2][k], false
			for i := 3; i <= 4; i++ {
				if values[i] == nil {
					continue
				}
				if math.IsNaN(values[i][k]) {
					return fmt.Errorf("%s has NaN for transition %d: want 0, or another number where an episode ends", arrays[i].Name, r.at)
				}
				r.ends = r.ends || values[i][k] != 0
			}
			r.task, r.stream = 0, 0
			if values[5] != nil {
				r.task = values[5][k]
			}
			if values[6] != nil {
				r.stream = values[6][k]
			}
			if r.best = 0; values[7] != nil {
				r.best = values[7][k]
			}
			if err := f(&r); err != nil {
				return err
			}
		}
		if im.o.Progress != nil {
			im.o.Progress(pass*n+done+m, 2*n)
		}
	}
	return nil
}

// measure checks every number and determines the space.
func (im *importer) measure(ctx context.Context) error {
	obs, err := im.set.Array(observationNames...)
	if err != nil {
		return err
	}
	float := obs.Float
	if err := obs.Close(); err != nil {
		return err
	}
	var most []float64
	var samples [][]float64
	var values []map[float64]bool // by field, while there are few values
	rewards := map[float64]bool{}
	var rewardSample []float64
	actions, episode, longest, ended, last := 0, 0, 1, 0, row{}
	pieces := map[[2]float64]int{} // by task and stream
	err = im.each(ctx, 0, func(r *row) error {
		if most == nil {
			most, samples, values = make([]float64, len(r.seen)), make([][]float64, len(r.seen)), make([]map[float64]bool, len(r.seen))
		}
		for i, v := range r.seen {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("the observation of transition %d has %v in field %d", r.at, v, i)
			}
			if !float && (v < 0 || v >= world.MaxSize) {
				return fmt.Errorf("the observation of transition %d has %v in field %d: integers must be 0 to %d (save it as floating point to have it measured)", r.at, v, i, world.MaxSize-1)
			}
			if im.o.Sizes != nil && (float || len(im.o.Sizes) != len(r.seen) || v >= float64(im.o.Sizes[i])) {
				return im.sizeless(float, r, i)
			}
			most[i] = max(most[i], v)
			if float {
				samples[i] = keep(samples[i], v, r.at, i)
				if values[i] == nil {
					values[i] = map[float64]bool{}
				}
				if len(values[i]) <= fieldLevels {
					values[i][v+0] = true
				}
			}
		}
		if math.IsNaN(r.reward) || math.IsInf(r.reward, 0) {
			return fmt.Errorf("the reward of transition %d is %v", r.at, r.reward)
		}
		if len(rewards) <= world.MaxRewards {
			rewards[r.reward+0] = true
		}
		rewardSample = keep(rewardSample, r.reward, r.at, world.MaxFields)
		for i, v := range []float64{r.action, r.best} {
			if v != math.Trunc(v) || v < 0 || v >= world.MaxActions || im.o.Actions > 0 && v >= float64(im.o.Actions) {
				return fmt.Errorf("the %s of transition %d is %v: want whole numbers from 0 to %d", []string{"action", "best action"}[i], r.at, v, cmp.Or(im.o.Actions, world.MaxActions)-1)
			}
			actions = max(actions, int(v)+1)
		}
		if r.task != math.Trunc(r.task) || math.Abs(r.task) > 1<<53 {
			return fmt.Errorf("the task of transition %d is %v: want a whole number of at most 2^53 in size", r.at, r.task)
		}
		if math.IsNaN(r.stream) {
			return fmt.Errorf("the stream of transition %d is NaN", r.at)
		}
		if r.at == 0 || r.task != last.task || r.stream != last.stream {
			key := [2]float64{r.task, r.stream}
			if pieces[key]++; pieces[key] == 2 {
				im.apart++
			}
			if episode > 0 {
				im.open++
			}
			episode = 0
		}
		if episode++; episode > 1<<20 {
			return fmt.Errorf("an episode of more than %d transitions ends nowhere before transition %d: mark ends in %s", 1<<20, r.at, strings.Join(endNames[:3], " or "))
		}
		if longest = max(longest, episode); r.ends {
			ended++
			episode = 0
		}
		last = *r
		return nil
	})
	if err != nil {
		return err
	}
	if ended == 0 {
		return fmt.Errorf("no episode ends in %d transitions: mark ends in %s", last.at+1, strings.Join(endNames[:3], " or "))
	}
	im.streams = len(pieces)
	im.world = world.Recorded{Env: world.EnvRecorded, Title: im.o.Title, Longest: longest}
	space := world.Space{Actions: max(2, actions, im.o.Actions)}
	for i := range most {
		f := world.Field{Name: fmt.Sprint("o", i), Size: int(most[i]) + 1}
		if im.o.Sizes != nil {
			f.Size = im.o.Sizes[i]
		}
		if float {
			if f.Edges = slices.Sorted(maps.Keys(values[i]))[1:]; len(values[i]) > fieldLevels {
				f.Edges = edges(samples[i], fieldLevels)
				im.cut++
			}
			f.Size = len(f.Edges) + 1
		}
		space.Fields = append(space.Fields, f)
	}
	for v := range rewards {
		space.Rewards = append(space.Rewards, v)
	}
	slices.Sort(space.Rewards)
	if im.rewards = space.Rewards; len(rewards) > world.MaxRewards {
		im.binned, im.rewards = true, edges(rewardSample, rewardLevels)
		space.Rewards = middles(rewardSample, im.rewards)
	}
	im.world.Declared = space
	return im.world.Check()
}

// keep returns the sample with v added such that each number so far is in it with equal probability
// (Vitter's algorithm R).
func keep(sample []float64, v float64, at, column int) []float64 {
	if len(sample) < reservoir {
		return append(sample, v)
	}
	w := rng.At(0, uint64(at), uint32(column), rng.Learner)
	if j := (uint64(w[0])<<32 | uint64(w[1])) % uint64(at+1); j < uint64(len(sample)) {
		sample[j] = v
	}
	return sample
}

// edges divides a sample into at most `levels` levels of about equal counts. A number that is
// frequent enough to fill a level gets a separate level, so that rare neighbouring numbers stay
// distinct. It sorts the sample.
func edges(sample []float64, levels int) []float64 {
	slices.Sort(sample)
	var values []float64 // distinct numbers
	var counts []int
	for i, v := range sample {
		if i == 0 || v != sample[i-1] {
			values, counts = append(values, v), append(counts, 0)
		}
		counts[len(counts)-1]++
	}
	for often := float64(len(sample)) / float64(levels); ; often *= 2 {
		if out := levelled(values, counts, levels, often); len(out) < levels {
			return out
		}
	}
}

// levelled returns edges such that each number with a count above `often` has a separate level. The
// result may have too many levels.
func levelled(values []float64, counts []int, levels int, often float64) []float64 {
	left := 0 // of numbers that share levels, and likewise levels
	for _, n := range counts {
		if float64(n) > often {
			levels--
		} else {
			left += n
		}
	}
	out := []float64{}
	in, shared := 0, false // of the current level
	for i, n := range counts {
		alone := float64(n) > often
		full := shared && float64(in)*float64(max(1, levels)) >= float64(left)
		if i > 0 && (alone || !shared || full) {
			out = append(out, values[i])
			if shared {
				left, levels = left-in, levels-1
			}
			in = 0
		}
		in, shared = in+n, !alone
	}
	return out
}

// middles returns the mean of the sorted sample in each level.
func middles(sample, edges []float64) []float64 {
	sums, counts := make([]float64, len(edges)+1), make([]float64, len(edges)+1)
	f := world.Field{Edges: edges}
	for _, v := range sample {
		l := f.Level(v)
		sums[l], counts[l] = sums[l]+v, counts[l]+1
	}
	for i := range sums {
		sums[i] /= counts[i]
	}
	return sums
}

// write writes every transition. A new stream begins when the task or the stream number changes.
func (im *importer) write(ctx context.Context, w *RecordsWriter) error {
	space := im.world.Declared
	observed := make([]byte, len(space.Fields))
	levels := world.Field{Edges: im.rewards}
	last := row{at: -1}
	labels := im.has(bestNames)
	return im.each(ctx, 1, func(r *row) error {
		if labels {
			w.Label(int(r.best))
		}
		if last.at < 0 || r.task != last.task || r.stream != last.stream {
			w.Stream(int64(r.task))
		}
		last = *r
		for i, v := range r.seen {
			if f := &space.Fields[i]; f.Edges != nil {
				observed[i] = byte(f.Level(v))
			} else {
				observed[i] = byte(v)
			}
		}
		reward, _ := slices.BinarySearch(im.rewards, r.reward)
		if im.binned {
			reward = levels.Level(r.reward)
		}
		return w.Add(observed, int(r.action), reward, r.ends)
	})
}

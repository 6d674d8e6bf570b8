package agent

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/loader"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/world"
	"haul/internal/world/history"
)

// dataset holds the parts of the learning histories that a run reads: those of the training goals
// and those of the test goals. The words have the layout that kernel.RegionSpec reads.
type dataset struct {
	world       world.World
	space       world.Space
	train, test []int32
	trainSpec   kernel.RegionSpec
	testSpec    kernel.RegionSpec
	learned     []world.Task        // the tasks to learn from
	checksum    string              // of all words that are read, as train-test
	stride      int                 // words per record
	label       int                 // byte of a record that holds the best action; 0: none
	labels      string              // the setting, with auto resolved
	short       int                 // number of streams that are left out of training, being too short for a sequence
	indexed     bool                // streams differ in length, and the words lie in a mapped file
	seek        *explorationLabeler // only with labels seek
	rename      *symbolPermutation  // only with rename
}

// newDataset reads the parts of an open file that the settings need.
func newDataset(h history.History, c *config.AD) (*dataset, error) {
	if err := Check(h, c); err != nil {
		return nil, err
	}
	train, test, held := goals(h, c)
	if c.ValidationGoals == 0 {
		test = held
	}
	l, tasks := &dataset{world: h.World(), space: h.World().Space()}, h.Tasks()
	for _, g := range train {
		l.learned = append(l.learned, tasks[g])
	}
	pack := h.Pack
	if rooms, ok := h.(*history.Rooms); ok && c.Labels != config.LabelsActions && c.Labels != config.LabelsAuto {
		pack = rooms.PackBest
	}
	learned, err := pack(train, c.TrainNStream, c.TrainSourceTimesteps)
	if err != nil {
		return nil, err
	}
	tested, err := pack(test, c.TrainNStream, c.TrainSourceTimesteps)
	if err != nil {
		return nil, err
	}
	l.indexed = learned.Spans != nil
	l.labels = l.labelsOf(c, learned.Label != 0)
	if l.labels != config.LabelsActions && learned.Label == 0 {
		return nil, fmt.Errorf("labels %s wants histories that hold the best action of each transition, as haul data tabular and haul data xland make them: set labels to %s", c.Labels, config.LabelsActions)
	}
	l.stride, l.label = cmp.Or(learned.Stride, l.space.Words()), learned.Label
	l.train, l.test, l.checksum = learned.Words, tested.Words, sumOf(learned)+"-"+sumOf(tested)
	if err := l.specify(c); err != nil {
		return l, err
	}
	if l.indexed {
		if err := l.index(learned, tested); err != nil {
			return l, err
		}
	}
	if l.labels == config.LabelsSeek {
		if l.seek, err = newExplorationLabeler(l); err != nil {
			return l, err
		}
	}
	if c.Rename {
		if l.rename, err = newSymbolPermutation(l); err != nil {
			return l, err
		}
	}
	return l, nil
}

// labelsOf returns the setting of labels, with auto resolved: it depends on whether the histories
// hold best actions. A world with equal rewards for all steps has no reward to find.
func (l *dataset) labelsOf(c *config.AD, best bool) string {
	switch {
	case c.Labels != config.LabelsAuto:
		return c.Labels
	case !best || c.Method == config.MethodIQL:
		return config.LabelsActions
	case len(l.space.Rewards) == 1:
		return config.LabelsBest
	}
	return config.LabelsFound
}

// onHost reports whether only the host can make the rows.
func (l *dataset) onHost() bool { return l.seek != nil || l.rename != nil }

// fill returns the function that makes training row g on the host.
func (l *dataset) fill() (func(g uint64, parts [][]int32) error, error) {
	plain, err := host.Fill(l.trainSpec, l.train)
	if err != nil || !l.onHost() {
		return plain, err
	}
	return func(g uint64, parts [][]int32) error {
		if err := plain(g, parts); err != nil {
			return err
		}
		if l.seek != nil {
			l.seek.relabel(parts[1], parts[0], parts[2], &l.trainSpec, g)
		}
		if l.rename != nil {
			l.rename.rename(parts[0], parts[2], &l.trainSpec, g)
		}
		return nil
	}, nil
}

// sumOf returns a checksum of the words that are read.
func sumOf(d *history.Data) string {
	if d.Sum != "" {
		return d.Sum
	}
	return fmt.Sprintf("%08x", checksumOf(d.Words))
}

// index takes streams that differ in length. It leaves out streams that are too short for a
// sequence.
func (l *dataset) index(learned, tested *history.Data) error {
	for _, part := range []struct {
		spec *kernel.RegionSpec
		data *history.Data
		what string
	}{{&l.trainSpec, learned, "to learn from"}, {&l.testSpec, tested, "to test on"}} {
		x := &kernel.Streams{Starts: part.data.Starts}
		for _, s := range part.data.Spans {
			own := kernel.Stream{First: s.First, Records: s.Records, Episodes: s.Episodes, Start: s.Start}
			if part.spec.Holds(x, &own) {
				x.Spans = append(x.Spans, own)
			}
		}
		if len(x.Spans) == 0 {
			return fmt.Errorf("none of the %d streams %s is long enough for a sequence: %s", len(part.data.Spans), part.what, lengthen(part.data, part.spec.Compressed))
		}
		if part.spec == &l.trainSpec {
			l.short = len(part.data.Spans) - len(x.Spans)
		}
		part.spec.Unequal, part.spec.Streams, part.spec.Steps = x, len(x.Spans), 0
		if err := part.spec.Check(); err != nil {
			return fmt.Errorf("learning histories: %w", err)
		}
	}
	return nil
}

// lengthen returns the advice which setting lets the longest stream hold a sequence.
func lengthen(data *history.Data, compressed bool) string {
	key, most := "n_transit", 0
	if compressed {
		key = "compress_interval"
	}
	for _, s := range data.Spans {
		most = max(most, roomOf(data, &s, compressed))
	}
	if most == 0 {
		return "two regions need two episodes at least; with use_compressed_context=false one is enough"
	}
	return fmt.Sprintf("set %s to %d at most", key, most)
}

// roomOf returns the largest region length such that the stream holds two regions that each begin
// with an episode. Without compression it returns the length of the longest context.
func roomOf(data *history.Data, s *history.Span, compressed bool) int {
	if !compressed {
		return s.Records
	}
	most := 0
	for _, from := range data.Starts[s.Start:][:s.Episodes] {
		most = max(most, min(int(from), s.Records-int(from)))
	}
	return most
}

// goals returns the indices of the goals to learn from, of the ones kept for validation, and of the
// held-out ones. The seed chooses the validation goals, so that they spread over the room.
func goals(h history.History, c *config.AD) (train, validation, held []int) {
	all, held := h.Split()
	rank := func(g int) uint32 { return rng.At(c.Seed, uint64(g), 1, rng.Goals)[0] }
	validation = slices.Clone(all)
	slices.SortFunc(validation, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	validation = validation[:min(c.ValidationGoals, len(all))]
	slices.Sort(validation)
	for _, g := range all {
		if !slices.Contains(validation, g) {
			train = append(train, g)
		}
	}
	return train, validation, held
}

// Check returns a one-line error if a run with these settings and histories cannot start.
func Check(h history.History, c *config.AD) error {
	if h == nil {
		return errors.New("no learning histories: make them with `haul data darkroom` or `haul data keydoor`")
	}
	_, own := h.(*history.Records) // whose streams differ in length
	switch streams, steps := h.Size(); {
	case own:
	case c.TrainNStream == 0 || c.TrainSourceTimesteps == 0:
		return fmt.Errorf("train_n_stream or train_source_timesteps is 0, for all of histories whose streams differ in length; in this file all are equal: "+
			"set train_n_stream to %d at most and train_source_timesteps to %d at most", streams, steps)
	case c.TrainNStream > streams:
		return fmt.Errorf("train_n_stream asks for %d streams per goal, the histories have %d: lower it, or make them with more", c.TrainNStream, streams)
	case c.TrainSourceTimesteps > steps:
		return fmt.Errorf("train_source_timesteps asks for %d transitions per stream, the histories have %d: lower it, or make them longer", c.TrainSourceTimesteps, steps)
	}
	if lack := history.Unsplit(h); lack != "" {
		return fmt.Errorf("the histories have %s", lack)
	}
	if train, _, _ := goals(h, c); len(train) == 0 {
		return fmt.Errorf("validation_goals keeps %d goals, and the histories have no more to learn from: lower it", c.ValidationGoals)
	}
	if c.NumWarmupSteps > c.TrainTimesteps {
		return fmt.Errorf("num_warmup_steps %d is over the %d iterations of the run, which would end before its warm-up: lower it", c.NumWarmupSteps, c.TrainTimesteps)
	}
	return checkTokens(c)
}

// specify configures how sequences are drawn from the words. Streams that differ in length have no
// horizon: their regions grow by compress_min.
func (l *dataset) specify(c *config.AD) error {
	each, unit := max(1, c.TrainSourceTimesteps)*l.stride, l.world.Limit()
	if l.indexed {
		unit = max(1, c.ShortestRegion())
	}
	tokens := model.Transitions
	if c.LastObservation {
		tokens = model.TransitionsBoth
	}
	l.trainSpec = tokens(kernel.RegionSpec{Streams: len(l.train) / each, Steps: c.TrainSourceTimesteps, Horizon: unit, Tokens: c.Tokens(),
		Compressed: c.UseCompressedContext, Shortest: c.ShortestRegion(), Longest: c.CompressInterval, Ahead: c.RegionAhead, Seed: c.Seed, Purpose: rng.Regions}, len(l.space.Fields))
	l.trainSpec.Record = l.stride
	switch l.labels {
	case config.LabelsBest, config.LabelsSeek:
		l.trainSpec.Label.Byte = l.label
	case config.LabelsFound:
		l.trainSpec.Later = &kernel.Later{Paid: len(l.space.Fields) + 1, Label: l.label}
	}
	l.testSpec = l.trainSpec
	l.testSpec.Streams, l.testSpec.Purpose = len(l.test)/each, rng.TestRegions
	if l.indexed {
		return nil // index checks this case
	}
	if err := l.trainSpec.Check(); err != nil {
		return fmt.Errorf("learning histories: %w", err)
	}
	return nil
}

// testRows makes the rows of the test, which are the same in every test.
func (l *dataset) testRows(rows int) *kernel.Slab {
	words := l.testSpec.Words()
	s := loader.NewSlabs(words, rows, 1)[0]
	part := func(i, r int) []int32 { return s.Ints[i][r*words[i]:][:words[i]] }
	for r := range rows {
		host.Row(&l.testSpec, part(0, r), part(1, r), part(2, r), l.test, uint64(r))
		if l.seek != nil {
			l.seek.relabel(part(1, r), part(0, r), part(2, r), &l.testSpec, uint64(r))
		}
	}
	return s
}

// checksumOf returns the CRC-32C of words in little-endian order.
func checksumOf(words []int32) uint32 {
	table, sum := crc32.MakeTable(crc32.Castagnoli), uint32(0)
	buf := make([]byte, 0, 1<<16)
	for chunk := range slices.Chunk(words, cap(buf)/4) {
		buf = buf[:0]
		for _, w := range chunk {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(w))
		}
		sum = crc32.Update(sum, table, buf)
	}
	return sum
}

// standIn is the space of random transitions: Dark Room's, 9 by 9.
var standIn = world.Space{Fields: []world.Field{{Name: "x", Size: 9}, {Name: "y", Size: 9}}, Actions: 5, Rewards: []float64{0, 1}}

// timed is a world without rules, for timing steps.
type timed struct{}

func (timed) String() string     { return "world of random transitions" }
func (timed) Name() string       { return "random" }
func (timed) Describe() string   { return "random transitions, episodes of 20 steps" }
func (timed) Space() world.Space { return standIn }
func (timed) Limit() int         { return 20 }

// randomDataset returns random transitions, for timing steps without a file.
func randomDataset(c *config.AD) (*dataset, error) {
	l := &dataset{world: timed{}, space: standIn, stride: standIn.Words()}
	l.labels = config.LabelsActions
	own := *c
	own.TrainNStream, own.TrainSourceTimesteps = cmp.Or(c.TrainNStream, 100), cmp.Or(c.TrainSourceTimesteps, 1000)
	c = &own
	steps := c.TrainSourceTimesteps
	if err := run.FitsHost("train_n_stream", "the host", "standing in for learning histories", c.TrainNStream, 4*int64(c.TrainNStream)*int64(steps)); err != nil {
		return nil, err
	}
	l.train = make([]int32, c.TrainNStream*steps)
	for i := range l.train {
		w := rng.At(c.Seed, uint64(i/steps), uint32(i%steps), rng.Learner)
		for at, size := range [...]int{9, 9, standIn.Actions, len(standIn.Rewards)} {
			l.train[i] |= int32(rng.Below(w[at], uint32(size))) << (8 * at)
		}
	}
	l.test = l.train
	if err := checkTokens(c); err != nil {
		return nil, err
	}
	return l, l.specify(c)
}

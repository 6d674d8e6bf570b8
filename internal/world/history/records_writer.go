package history

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"haul/internal/world"
)

// RecordsWriter writes a file of version 3, one transition after another. Its memory does not grow
// with their number. The file gets its name in Close; until then it is a temporary file in the same
// folder. Only one goroutine may use it.
type RecordsWriter struct {
	path   string
	space  world.Space
	head   recordsHeader
	file   *os.File // nil after Close or Discard
	out    *bufio.Writer
	spool  *os.File // the episodes' starts; a file without a name
	starts *bufio.Writer

	record   []byte
	best     int         // of the next record, with labels
	chunk    hash.Hash32 // of the current chunk
	inChunk  int
	startSum hash.Hash32
	payload  int64
	spooled  int64

	task    map[int64]int
	counts  [][]int // by task: number of streams with this many episodes
	stream  *recordStream
	episode int // in the current stream
	open    bool
	earned  float64
}

// CreateRecords begins a file of a world's histories. Readers split the tasks by seed and ratio.
func CreateRecords(path string, w world.World, splitSeed uint64, trainRatio float64) (*RecordsWriter, error) {
	if err := w.Space().Check(); err != nil {
		return nil, fmt.Errorf("history %s: %w", path, err)
	}
	if !(trainRatio >= 0 && trainRatio <= 1) {
		return nil, fmt.Errorf("history %s: a train ratio of %v: want 0 to 1", path, trainRatio)
	}
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	f, err := createTemporary(path)
	if err != nil {
		return nil, fmt.Errorf("create history %s: %w", path, bare(err))
	}
	spool, err := os.CreateTemp("", "haul-starts")
	if err != nil {
		f.Close() // it is empty
		os.Remove(f.Name())
		return nil, fmt.Errorf("create history %s: %w", path, spooled(err))
	}
	os.Remove(spool.Name()) // if this fails, the file stays until the system clears its folder
	r := &RecordsWriter{path: path, space: w.Space(), file: f, spool: spool, out: bufio.NewWriterSize(f, 1<<20), starts: bufio.NewWriterSize(spool, 1<<16),
		chunk: crc32.New(castagnoli), startSum: crc32.New(castagnoli), task: map[int64]int{}}
	r.head = recordsHeader{World: text, SplitSeed: splitSeed, TrainRatio: trainRatio}
	r.record = make([]byte, 4*r.space.Words())
	_, err = r.out.Write(make([]byte, preambleBytes))
	return r, err
}

// Label sets the best action in hindsight of the next transition. If it is used, it must be called
// before every transition.
func (w *RecordsWriter) Label(action int) {
	if !w.head.Labels {
		if w.payload > 0 {
			panic("history: labels from the first transition on, or none")
		}
		w.head.Labels = true
		w.record = make([]byte, w.head.recordBytes(w.space))
	}
	w.best = action
}

// Stream begins the next stream, of the task with this number.
func (w *RecordsWriter) Stream(task int64) {
	index, known := w.task[task]
	if !known {
		index = len(w.head.Tasks)
		w.task[task] = index
		w.head.Tasks, w.head.Curves = append(w.head.Tasks, task), append(w.head.Curves, nil)
		w.counts = append(w.counts, nil)
	}
	w.endStream()
	w.head.Streams = append(w.head.Streams, recordStream{Task: index})
	w.stream, w.episode = &w.head.Streams[len(w.head.Streams)-1], 0
}

// Add writes one transition: the observation before the action, the action, the reward's index, and
// whether the episode ends with it.
func (w *RecordsWriter) Add(observed []byte, action, reward int, ends bool) error {
	n := len(w.space.Fields)
	switch {
	case w.stream == nil || len(observed) != n:
		panic("history: Add wants a stream and an observation of the space")
	case action < 0 || action >= w.space.Actions:
		return fmt.Errorf("write history %s: action %d, the world has %d", w.path, action, w.space.Actions)
	case reward < 0 || reward >= len(w.space.Rewards):
		return fmt.Errorf("write history %s: reward %d of a list of %d", w.path, reward, len(w.space.Rewards))
	case w.head.Labels && (w.best < 0 || w.best >= w.space.Actions):
		return fmt.Errorf("write history %s: best action %d, the world has %d", w.path, w.best, w.space.Actions)
	case w.stream.Records >= maxSteps:
		return fmt.Errorf("write history %s: a stream of more than %d transitions: begin another", w.path, maxSteps)
	}
	for i, v := range observed {
		if int(v) >= w.space.Fields[i].Size {
			return fmt.Errorf("write history %s: field %s is %d, it takes %d values", w.path, w.space.Fields[i].Name, v, w.space.Fields[i].Size)
		}
	}
	if !w.open {
		var start [4]byte
		binary.LittleEndian.PutUint32(start[:], uint32(w.stream.Records))
		if _, err := w.starts.Write(start[:]); err != nil {
			return fmt.Errorf("write history %s: %w", w.path, spooled(err))
		}
		w.startSum.Write(start[:])
		w.spooled += 4
		w.stream.Episodes++
		w.open = true
	}
	copy(w.record, observed)
	w.record[n], w.record[n+1] = byte(action), byte(reward)
	if w.head.Labels {
		w.record[n+2] = byte(w.best)
	}
	if err := w.put(w.record); err != nil {
		return fmt.Errorf("write history %s: %w", w.path, bare(err))
	}
	w.stream.Records++
	w.earned += w.space.Rewards[reward]
	if ends {
		w.endEpisode()
	}
	return nil
}

// put writes bytes of records and updates the checksum of their chunk.
func (w *RecordsWriter) put(data []byte) error {
	w.payload += int64(len(data))
	for len(data) > 0 {
		n := min(len(data), chunkBytes-w.inChunk)
		w.chunk.Write(data[:n])
		if _, err := w.out.Write(data[:n]); err != nil {
			return err
		}
		if w.inChunk += n; w.inChunk == chunkBytes {
			w.endChunk()
		}
		data = data[n:]
	}
	return nil
}

func (w *RecordsWriter) endChunk() {
	if w.inChunk > 0 {
		w.head.Checksums = append(w.head.Checksums, w.chunk.Sum32())
		w.chunk.Reset()
		w.inChunk = 0
	}
}

// spooled adds to an error that it concerns the folder of temporary files.
func spooled(err error) error {
	return fmt.Errorf("temporary folder %s (TMPDIR names another): %w", os.TempDir(), bare(err))
}

// endStream records whether the current stream ends within an episode.
func (w *RecordsWriter) endStream() {
	if w.open {
		w.stream.Open = true
	}
	w.endEpisode()
}

// endEpisode adds the return of the current episode to its task's curve.
func (w *RecordsWriter) endEpisode() {
	if !w.open {
		return
	}
	if t, e := w.stream.Task, w.episode; e < maxCurve {
		if e == len(w.counts[t]) {
			w.counts[t], w.head.Curves[t] = append(w.counts[t], 0), append(w.head.Curves[t], 0)
		}
		w.counts[t][e]++
		w.head.Curves[t][e] += (w.earned - w.head.Curves[t][e]) / float64(w.counts[t][e])
	}
	w.episode++
	w.open, w.earned = false, 0
}

// part changes a training share that would leave no training task or no held-out task, if there are
// at least two tasks. It returns a note, or "" if nothing changes.
func (w *RecordsWriter) part() string {
	n, asked := len(w.head.Tasks), w.head.TrainRatio
	train, held := Deal(n, w.head.SplitSeed, asked)
	switch {
	case n < 2 || len(train) > 0 && len(held) > 0:
		return ""
	case len(held) == 0:
		w.head.TrainRatio = float64(n-1) / float64(n)
		return fmt.Sprintf("a train ratio of %g holds none of %d tasks out: one is held out, since agents are tested on it", asked, n)
	}
	w.head.TrainRatio = 1 / float64(n)
	return fmt.Sprintf("a train ratio of %g leaves none of %d tasks to learn from: one is", asked, n)
}

// Close completes the file and gives it its name. If a write fails, no file appears.
func (w *RecordsWriter) Close() error {
	if w.file == nil {
		return nil
	}
	w.endStream()
	if err := w.finish(); err != nil {
		w.Discard()
		return fmt.Errorf("write history %s: %w", w.path, bare(err))
	}
	return nil
}

func (w *RecordsWriter) finish() error {
	for i, s := range w.head.Streams {
		if s.Records == 0 {
			return fmt.Errorf("stream %d has no transition", i)
		}
	}
	if len(w.head.Streams) == 0 {
		return errors.New("no streams")
	}
	w.endChunk()
	w.head.Checksums = append(w.head.Checksums, w.startSum.Sum32())
	text, err := json.Marshal(w.head)
	if err != nil {
		return err
	}
	if err := w.starts.Flush(); err != nil {
		return spooled(err)
	}
	if _, err := w.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(w.out, w.spool); err != nil {
		return err
	}
	if _, err := w.out.Write(text); err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	p := preamble{payload: w.payload, starts: w.spooled, json: int64(len(text)), jsonSum: checksum(text), format: recordsFormat}
	if _, err := w.file.WriteAt(p.bytes(), 0); err != nil {
		return err
	}
	if err := durable.sync(w.file); err != nil {
		return err
	}
	temp := w.file.Name()
	if err := errors.Join(w.file.Close(), w.spool.Close()); err != nil {
		return err
	}
	if err := durable.rename(temp, w.path); err != nil {
		return err
	}
	w.file = nil
	return durable.folder(filepath.Dir(w.path))
}

// Discard removes what was written. After Close it does nothing, so it may be deferred.
func (w *RecordsWriter) Discard() {
	if w.file == nil {
		return
	}
	w.file.Close() // only the removal matters
	w.spool.Close()
	os.Remove(w.file.Name())
	w.file = nil
}

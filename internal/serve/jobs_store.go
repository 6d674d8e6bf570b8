package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"haul/internal/run"
)

// jobStore holds jobs: in memory, or in a folder that outlives the server.
type jobStore interface {
	begin(one *job, request []byte) error // before anybody hears of the job
	request(id string) ([]byte, error)
	save(one *job) error // one that has ended needs its request no more
	remove(id string) error
	kept() bool
	ready() error // whether a job could be kept now
	close() error
}

// openJobStore opens the folder, or memory where it is "", and reads what is there.
func openJobStore(folder string, log func(string)) (jobStore, []*job, error) {
	if folder == "" {
		return &jobMemory{requests: map[string][]byte{}}, nil, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, fmt.Errorf("folder of jobs %s: %w", folder, err)
	}
	lock, err := run.Hold(folder)
	if err != nil {
		return nil, nil, fmt.Errorf("folder of jobs %s: %w", folder, err)
	}
	d := &jobFolder{folder: folder, lock: lock}
	found, err := d.read(log)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return d, found, nil
}

// jobMemory keeps requests until their jobs have ended.
type jobMemory struct {
	mu       sync.Mutex
	requests map[string][]byte
}

func (m *jobMemory) begin(one *job, request []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[one.ID] = request
	return nil
}

func (m *jobMemory) request(id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[id], nil
}

func (m *jobMemory) save(one *job) error {
	if one.ended() {
		return m.remove(one.ID)
	}
	return nil
}

func (m *jobMemory) remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.requests, id)
	return nil
}

func (m *jobMemory) kept() bool   { return false }
func (m *jobMemory) ready() error { return nil }
func (m *jobMemory) close() error { return nil }

// jobFolder keeps two files per job: its request, as it came, until the job has ended, and how it
// stands. The second is written last and removed first: without it there is no job.
type jobFolder struct {
	folder string
	lock   io.Closer
	probe  sync.Mutex // of ready
}

const (
	requestEnding = ".request.json"
	stateEnding   = ".job.json"
)

// keptJob is the second file.
type keptJob struct {
	jobState
	Sum   string `json:"request_sum"`
	From  string `json:"client"`
	Bytes int64  `json:"bytes"`
}

func (d *jobFolder) path(id, ending string) string { return filepath.Join(d.folder, id+ending) }

func (d *jobFolder) begin(one *job, request []byte) error {
	err := run.WriteAtomic(d.path(one.ID, requestEnding), func(w io.Writer) error { _, err := w.Write(request); return err })
	if err == nil {
		err = d.save(one)
	}
	if err != nil {
		return errors.Join(err, d.remove(one.ID))
	}
	return nil
}

func (d *jobFolder) request(id string) ([]byte, error) { return os.ReadFile(d.path(id, requestEnding)) }

func (d *jobFolder) save(one *job) error {
	k := keptJob{jobState: one.jobState, Sum: one.sum, From: one.from, Bytes: one.bytes}
	err := run.WriteAtomic(d.path(one.ID, stateEnding), func(w io.Writer) error { return json.NewEncoder(w).Encode(&k) })
	if err == nil && one.ended() {
		err = gone(os.Remove(d.path(one.ID, requestEnding)))
	}
	return err
}

func (d *jobFolder) remove(id string) error {
	return errors.Join(gone(os.Remove(d.path(id, stateEnding))), gone(os.Remove(d.path(id, requestEnding))))
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ready writes a file as a job would.
func (d *jobFolder) ready() error {
	d.probe.Lock()
	defer d.probe.Unlock()
	path := filepath.Join(d.folder, "ready")
	return errors.Join(os.WriteFile(path, []byte("ready\n"), 0o600), gone(os.Remove(path)))
}

func (d *jobFolder) kept() bool   { return true }
func (d *jobFolder) close() error { return d.lock.Close() }

var jobFile = regexp.MustCompile(`^([A-Z2-7]{26})\.(job|request)\.json(\.tmp)?$`)

// read takes up what an earlier server left. What cannot be read is left alone, and said; what a
// loss of power left half written is taken away.
func (d *jobFolder) read(log func(string)) (out []*job, err error) {
	entries, err := os.ReadDir(d.folder)
	if err != nil {
		return nil, fmt.Errorf("folder of jobs: %w", err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	for _, e := range entries {
		m := jobFile.FindStringSubmatch(e.Name())
		switch {
		case m == nil:
		case m[3] != "", m[2] == "request" && !there[m[1]+stateEnding]:
			if err := os.Remove(filepath.Join(d.folder, e.Name())); err != nil {
				log(err.Error())
			}
		case m[2] == "job":
			one, err := d.readOne(m[1])
			if err != nil {
				log(fmt.Sprintf("job %s is left alone: %v", m[1], err))
				continue
			}
			out = append(out, one)
		}
	}
	return out, nil
}

func (d *jobFolder) readOne(id string) (*job, error) {
	text, err := os.ReadFile(d.path(id, stateEnding))
	if err != nil {
		return nil, err
	}
	var k keptJob
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	if k.ID != id {
		return nil, fmt.Errorf("its file says that it is job %q", k.ID)
	}
	if k.Ended == nil {
		if _, err := os.Stat(d.path(id, requestEnding)); err != nil {
			return nil, err
		}
	}
	return &job{jobState: k.jobState, sum: k.Sum, from: k.From, bytes: k.Bytes}, nil
}

package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"haul/internal/run"
	"haul/internal/vrp/files"
)

// jobStore holds jobs: in memory, or in a folder that outlives the server.
type jobStore interface {
	begin(one *job, request []byte) error // before anybody hears of the job
	request(one *job) ([]byte, error)     // as it came, or an error
	save(one *job) error                  // one that has ended needs its request no more
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

func (m *jobMemory) request(one *job) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[one.ID], nil
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
	Sum   string `json:"request_sum"` // SHA-256 of the first file
	From  string `json:"client"`
	Owner string `json:"owner,omitempty"`
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

func (d *jobFolder) request(one *job) ([]byte, error) {
	text, err := os.ReadFile(d.path(one.ID, requestEnding))
	if err != nil {
		return nil, err
	}
	if digest := sha256.Sum256(text); hex.EncodeToString(digest[:]) != one.sum {
		return nil, refuse(http.StatusUnprocessableEntity, "the stored request of the job is not the one that was sent: %s has another checksum; send it again", one.ID+requestEnding)
	}
	return text, nil
}

func (d *jobFolder) save(one *job) error {
	k := keptJob{jobState: one.jobState, Sum: one.sum, From: one.from, Owner: one.owner, Bytes: one.bytes}
	text, err := json.Marshal(&k)
	if err == nil {
		err = run.WriteAtomic(d.path(one.ID, stateEnding), func(w io.Writer) error { _, err := w.Write(summed(text)); return err })
	}
	if err == nil && one.ended() {
		err = run.Remove(d.path(one.ID, requestEnding))
	}
	return err
}

func (d *jobFolder) remove(id string) error {
	return errors.Join(run.Remove(d.path(id, stateEnding)), run.Remove(d.path(id, requestEnding)))
}

// sumLine ends the file of a job: the CRC-32C of all that is before it.
const sumLine = "{\"crc32c\":\"%08x\"}\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// summed is a line of JSON with the line of its sum.
func summed(text []byte) []byte {
	text = append(text, '\n')
	return fmt.Appendf(text, sumLine, crc32.Checksum(text, castagnoli))
}

// unsummed takes the line of the sum off a text and checks it. old says that there is none: earlier
// versions wrote one line.
func unsummed(text []byte) (line []byte, old bool, err error) {
	at := bytes.IndexByte(text, '\n') + 1
	if at == len(text) && at > 0 {
		return text, true, nil
	}
	if want := fmt.Sprintf(sumLine, crc32.Checksum(text[:at], castagnoli)); at == 0 || string(text[at:]) != want {
		return nil, false, errors.New("its checksum is not that of its content: the file is damaged")
	}
	return text[:at], false, nil
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
			one, err := d.readOne(m[1], log)
			if err != nil {
				log(fmt.Sprintf("job %s is left alone: %v", m[1], err))
				continue
			}
			out = append(out, one)
		}
	}
	return out, nil
}

func (d *jobFolder) readOne(id string, log func(string)) (*job, error) {
	text, err := os.ReadFile(d.path(id, stateEnding))
	if err != nil {
		return nil, err
	}
	text, old, err := unsummed(text)
	if err != nil {
		return nil, err
	}
	if old {
		log(fmt.Sprintf("job %s was kept without a checksum by an earlier version: it is read as it is", id))
	}
	var k keptJob
	if err := files.Decode(text, &k); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{jobQueued, jobRunning, jobDone, jobFailed, jobCancelled}, k.State) || (k.Ended == nil) != (k.State == jobQueued || k.State == jobRunning) {
		return nil, fmt.Errorf("its file says that it is %q", k.State)
	}
	if k.ID != id {
		return nil, fmt.Errorf("its file says that it is job %q", k.ID)
	}
	if k.Ended == nil {
		if _, err := os.Stat(d.path(id, requestEnding)); err != nil {
			return nil, err
		}
	}
	return &job{jobState: k.jobState, sum: k.Sum, from: k.From, owner: k.Owner, bytes: k.Bytes}, nil
}

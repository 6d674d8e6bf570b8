package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"haul/internal/run"
)

// watcher reads the folder of runs again and again, once for all clients, and tells the hub what
// changed. One goroutine reads; its results are handed out under the lock and never changed
// afterwards.
type watcher struct {
	folder string
	hub    *hub
	log    func(string)
	noted  map[string]bool // what was logged

	mu   sync.RWMutex // guards runs and left
	runs map[string]*Run
	left map[string]time.Time // runs whose process is known to have ended, and when
}

// beatEvery is how often an idle stream is written to, in looks.
const beatEvery = 30

// maxRuns bounds how many folders are shown.
const maxRuns = 2000

func watch(ctx context.Context, folder string, poll time.Duration, log func(string)) (*watcher, error) {
	w := &watcher{folder: folder, hub: newHub(), log: log, noted: map[string]bool{}, runs: map[string]*Run{}, left: map[string]time.Time{}}
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("--runs %s is a file: name the folder that holds the runs", folder)
	}
	if _, err := os.Stat(path.Join(folder, run.ConfigName)); err == nil {
		return nil, fmt.Errorf("--runs %s is a run itself: name the folder that holds it", folder)
	}
	w.look()
	go func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			w.look()
			if n%beatEvery == 0 {
				w.hub.beat()
			}
		}
	}()
	return w, nil
}

// look reads what has changed.
func (w *watcher) look() {
	root, err := os.OpenRoot(w.folder)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.once(fmt.Sprintf("%s cannot be read: %v", w.folder, err))
		}
		w.publish(map[string]*Run{}, nil)
		return
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		w.once(fmt.Sprintf("%s cannot be read: %v", w.folder, err))
		return
	}
	locks := flocks()
	seen, news := map[string]*Run{}, []*gained(nil)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Type().IsRegular() || len(seen) == maxRuns {
			continue
		}
		// A pipe that nobody writes to would be waited for.
		if info, err := root.Stat(e.Name()); err == nil && !info.IsDir() {
			continue
		}
		dir, err := root.OpenRoot(e.Name())
		if err != nil {
			if e.Type()&fs.ModeSymlink != 0 {
				w.once(fmt.Sprintf("%s is a link out of %s and is not shown", e.Name(), w.folder))
			}
			continue
		}
		if isRun(dir) {
			r, more, err := readRun(dir, e.Name(), w.runs[e.Name()], locks.holds, w.since(e.Name()))
			if err == nil {
				seen[e.Name()] = r
			}
			if more != nil {
				news = append(news, more)
			}
		}
		_ = dir.Close()
	}
	w.publish(seen, news)
}

// ended notes that the process of a run is gone.
func (w *watcher) ended(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left[name] = time.Now()
}

// since tells for how long a folder that was last written to then has been quiet. What the process
// of a run left when it ended, nobody is about to go on with.
func (w *watcher) since(name string) func(written time.Time) time.Duration {
	return func(written time.Time) time.Duration {
		w.mu.RLock()
		defer w.mu.RUnlock()
		if at, ok := w.left[name]; ok && !written.After(at) {
			return freshness
		}
		return time.Since(written)
	}
}

// publish hands out what was read, and tells of it.
func (w *watcher) publish(runs map[string]*Run, news []*gained) {
	var gone []string
	w.mu.Lock()
	for name := range w.runs {
		if runs[name] == nil {
			gone = append(gone, name)
		}
	}
	w.runs = runs
	w.mu.Unlock()
	for _, more := range news {
		w.hub.tell("run", more)
	}
	for _, name := range gone {
		w.hub.tell("gone", map[string]string{"name": name})
	}
}

func (w *watcher) once(text string) {
	if !w.noted[text] {
		w.noted[text] = true
		w.log(text)
	}
}

func (w *watcher) get(name string) *Run {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.runs[name]
}

func (w *watcher) all() []*Run {
	w.mu.RLock()
	defer w.mu.RUnlock()
	out := make([]*Run, 0, len(w.runs))
	for _, r := range w.runs {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *Run) int {
		if c := b.Updated.Compare(a.Updated); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// count is how many runs there are in a state; "" for any.
func (w *watcher) count(state string) (n int) {
	for _, r := range w.all() {
		if state == "" || r.State == state {
			n++
		}
	}
	return n
}

// open opens a file of a run that was seen there. Names are compared with what the folder holds;
// none becomes part of a path before.
func (w *watcher) open(r *Run, file string) (*os.File, error) {
	root, err := os.OpenRoot(w.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := root.OpenRoot(r.Name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Open(file)
}

func (s *Server) findRun(r *http.Request) (*Run, error) {
	name := r.PathValue("name")
	if found := s.runs.get(name); found != nil {
		return found, nil
	}
	return nil, refuse(http.StatusNotFound, "there is no run %q in %s", line(name), s.o.Runs)
}

// runList is what GET /api/v1/runs answers.
type runList struct {
	Folder string    `json:"folder"`
	Runs   []Summary `json:"runs"`
	Train  *offered  `json:"train,omitempty"` // what runs can be started with; left out where none can
}

func (s *Server) listRuns(http.ResponseWriter, *http.Request) (runList, error) {
	list := []Summary{}
	for _, r := range s.runs.all() {
		list = append(list, r.Summary)
	}
	return runList{s.o.Runs, list, s.offers()}, nil
}

func (s *Server) oneRun(_ http.ResponseWriter, r *http.Request) (*Run, error) { return s.findRun(r) }

var (
	runName   = []param{{"name", "path", "string letters=1", "Of the run's folder."}}
	runRoutes = []route{
		{at: "GET /api/v1/runs", id: "listRuns", tag: "runs", text: "Lists the runs of the folder, the newest first", do: answers((*Server).listRuns)},
		{at: "POST /api/v1/runs", id: "startRun", tag: "runs", text: "Starts a training run, where haul serve --train allows it",
			takes: asJSON(trainRequest{}), do: writes((*Server).startRun), gives: []reply{{status: 201, text: "It has begun.", content: asJSON(startedRun{})}}},
		{at: "GET /api/v1/runs/{name}", id: "getRun", tag: "runs", text: "Shows a run: settings, tables, pictures, result", params: runName, do: answers((*Server).oneRun)},
		{at: "POST /api/v1/runs/{name}/stop", id: "stopRun", tag: "runs", text: "Lets a run that was started here save and end", params: runName,
			do: writes((*Server).stopRun), gives: []reply{{status: 202, text: "It is told.", content: asJSON(startedRun{})}}},
		{at: "GET /api/v1/runs/{name}/pictures/{file}", id: "getPicture", tag: "runs", text: "Gives a picture of a run",
			params: []param{runName[0], {"file", "path", "string letters=1", "One of the run's pictures."}}, do: writes((*Server).picture),
			gives: []reply{{status: 200, text: "An image, PNG or SVG; as application/octet-stream where Accept asks for that alone.",
				content: []media{{kind: octets, of: aFile}, {kind: "image/png", of: aFile}, {kind: "image/svg+xml", of: aFile}}}}},
		{at: "POST /api/v1/runs/{name}/ledger", id: "measureStep", tag: "runs", text: "Measures where the time of the run's training step goes, on this machine's CPU",
			more: "As haul profile does, with at most 128 rows per step. The account is kept until the settings change.", params: runName, do: answers((*Server).measureLedger)},
		{at: "GET /api/v1/events", id: "followRuns", tag: "runs", text: "Streams what happens to the runs, as server-sent events",
			more: "`hello` when the stream begins; `run` with a run's summary and new rows (or `reload`, where the run is to be read again); `gone` when a folder went away.",
			do:   writes((*Server).events), gives: eventStream("A stream without an end.")},
	}
)

// octets is what a picture is sent as to clients that ask for that alone.
const octets = "application/octet-stream"

// picture sends one of a run's pictures. It is shown as an image; as a document it may do nothing
// (dataCSP).
func (s *Server) picture(w http.ResponseWriter, r *http.Request) {
	found, err := s.findRun(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	file := r.PathValue("file")
	if !slices.Contains(found.Pictures, file) {
		s.fail(w, refuse(http.StatusNotFound, "the run %s has no picture %q", found.Name, line(file)))
		return
	}
	f, err := s.runs.open(found, file)
	if err != nil {
		s.fail(w, refuse(http.StatusNotFound, "the run %s has no picture %q any more", found.Name, line(file)))
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		s.fail(w, refuse(http.StatusNotFound, "the run %s has no picture %q", found.Name, line(file)))
		return
	}
	kind := "image/png"
	if strings.EqualFold(path.Ext(file), ".svg") {
		kind = "image/svg+xml"
	}
	if r.Header.Get("Accept") == octets {
		kind = octets
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", info.ModTime(), f)
}

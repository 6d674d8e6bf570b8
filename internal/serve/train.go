package serve

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Runs that are started over HTTP. What a reader could break: the server knows which settings
// and devices exist, and a request chooses among them by name. Nothing of a request becomes a
// path or a flag, except a number of seconds. The server starts one run at a time, which ends
// with it.

// Training is what runs may be started with.
type Training struct {
	Program string   // that trains: PROGRAM train --config ...
	Configs []string // the first is what the page offers
	Devices []string
}

// trainMost bounds the time of a run that is started here, in seconds.
const trainMost = 24 * 3600

// trainGrace is how long a run may take to save when the server ends.
const trainGrace = 30 * time.Second

// startWait is how long a request waits until its run shows.
const startWait = 60 * time.Second

// trainRequest asks for a run.
type trainRequest struct {
	Config string  `json:"config"` // one of those that GET /api/v1/runs names
	Device string  `json:"device,omitempty"`
	Time   float64 `json:"time,omitempty" api:"min=0 max=86400"` // seconds; 0: to the end of its settings
}

// startedRun names a run that was started or is told to stop.
type startedRun struct {
	Name string `json:"name"`
}

// offered is what GET /api/v1/runs tells of starting.
type offered struct {
	Configs []string `json:"configs"`
	Devices []string `json:"devices"`
	Running string   `json:"running,omitempty"` // the run of this server that goes on
}

// trainer holds the one run that is the server's.
type trainer struct {
	mu    sync.Mutex
	child *trained
}

type trained struct {
	name string
	cmd  *exec.Cmd
	over chan struct{} // closed when it has ended
	err  error         // how it ended
	said lastWords
}

// lastWords keeps the end of what a program writes.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text = append(l.text, p...); len(l.text) > 4096 {
		l.text = append(l.text[:0], l.text[len(l.text)-2048:]...)
	}
	return len(p), nil
}

// last is the last line.
func (l *lastWords) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(l.text)), "\n")
	return line(lines[len(lines)-1])
}

// going is the run that has not ended; nil: none.
func (t *trainer) going() *trained {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.child != nil {
		select {
		case <-t.child.over:
		default:
			return t.child
		}
	}
	return nil
}

// offers is what can be started here; nil where nothing can.
func (s *Server) offers() *offered {
	if s.o.Train == nil {
		return nil
	}
	o := &offered{Configs: s.o.Train.Configs, Devices: s.o.Train.Devices}
	if t := s.trainer.going(); t != nil {
		o.Running = t.name
	}
	return o
}

func (s *Server) startRun(w http.ResponseWriter, r *http.Request) {
	t, err := s.started(w, r)
	if err != nil {
		s.fail(w, err)
		return
	}
	wait := time.NewTimer(startWait)
	defer wait.Stop()
	for s.runs.get(t.name) == nil {
		select {
		case <-t.over:
			if t.err != nil && s.runs.get(t.name) == nil {
				s.fail(w, refuse(http.StatusUnprocessableEntity, "haul train ended: %s", t.said.last()))
				return
			}
		case <-time.After(100 * time.Millisecond):
			continue
		case <-wait.C:
		case <-r.Context().Done():
		}
		break
	}
	w.Header().Set("Location", "/api/v1/runs/"+t.name)
	s.answerAs(w, http.StatusCreated, startedRun{t.name})
}

// started starts what a request asks for.
func (s *Server) started(w http.ResponseWriter, r *http.Request) (*trained, error) {
	may := s.o.Train
	if may == nil { // before its body, which may be long in coming
		return nil, refuse(http.StatusForbidden, "this server starts no runs: haul serve --train does")
	}
	var ask trainRequest
	if err := s.decode(w, r, &ask); err != nil {
		return nil, err
	}
	ask.Device = or(ask.Device, may.Devices[0])
	switch {
	case !slices.Contains(may.Configs, ask.Config):
		return nil, refuse(http.StatusUnprocessableEntity, "config is %q: there are %s", line(ask.Config), strings.Join(may.Configs, ", "))
	case !slices.Contains(may.Devices, ask.Device):
		return nil, refuse(http.StatusUnprocessableEntity, "device is %q: there are %s", line(ask.Device), strings.Join(may.Devices, ", "))
	case !(ask.Time >= 0 && ask.Time <= trainMost):
		return nil, refuse(http.StatusUnprocessableEntity, "time is %g: from 0, no limit, to %d seconds are possible", ask.Time, trainMost)
	}
	s.trainer.mu.Lock()
	defer s.trainer.mu.Unlock()
	if c := s.trainer.child; c != nil {
		select {
		case <-c.over:
		default:
			return nil, refuse(http.StatusConflict, "%s has not ended: stop it first, or wait", c.name)
		}
	}
	if s.stopping.Load() {
		return nil, &problem{Status: http.StatusServiceUnavailable, Detail: "the server stops", retry: 5}
	}
	name, err := s.freeName(ask.Config)
	if err != nil {
		return nil, err
	}
	args := []string{"train", "--config", ask.Config, "--device", ask.Device, "--out", filepath.Join(s.o.Runs, name)}
	if ask.Time > 0 {
		args = append(args, "--time", time.Duration(math.Ceil(ask.Time*1000)*float64(time.Millisecond)).String())
	}
	t := &trained{name: name, cmd: exec.Command(may.Program, args...), over: make(chan struct{})}
	t.cmd.Stderr = &t.said
	if err := t.cmd.Start(); err != nil {
		return nil, refuse(http.StatusInternalServerError, "haul train could not be started: %s", err)
	}
	go func() {
		t.err = t.cmd.Wait()
		s.runs.ended(name)
		close(t.over)
	}()
	s.trainer.child = t
	return t, nil
}

// freeName is the first of config-001, config-002 ... that is no folder yet.
func (s *Server) freeName(config string) (string, error) {
	for i := 1; i < 10_000; i++ {
		name := fmt.Sprintf("%s-%03d", config, i)
		if _, err := os.Lstat(filepath.Join(s.o.Runs, name)); os.IsNotExist(err) {
			return name, nil
		}
	}
	return "", refuse(http.StatusConflict, "%s has too many runs of %s", s.o.Runs, config)
}

func (s *Server) stopRun(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	t := s.trainer.going()
	if t == nil || t.name != name {
		if _, err := s.findRun(r); err != nil {
			s.fail(w, err)
			return
		}
		s.fail(w, refuse(http.StatusConflict, "%s is no run that this server started and that goes on", line(name)))
		return
	}
	t.stop()
	s.answerAs(w, http.StatusAccepted, startedRun{name})
}

// stop tells a run to save and end.
func (t *trained) stop() {
	if t.cmd.Process.Signal(os.Interrupt) != nil {
		_ = t.cmd.Process.Kill() // it has ended, or this system knows no signals
	}
}

// close stops the run under way and waits for it, for as long as saving may take.
func (t *trainer) close(patience time.Duration) {
	c := t.going()
	if c == nil {
		return
	}
	c.stop()
	select {
	case <-c.over:
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		<-c.over
	}
}

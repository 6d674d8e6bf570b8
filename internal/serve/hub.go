package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// hub passes events on to listeners. An event is encoded once, and no sender waits for a
// listener: one whose queue is full is disconnected, and starts again when it reconnects.
type hub struct {
	mu     sync.Mutex
	in     map[*listener]struct{}
	closed bool
}

type listener struct{ queue chan []byte }

// queueLength is how many events a listener may lag behind.
const queueLength = 64

func newHub() *hub { return &hub{in: map[*listener]struct{}{}} }

// join adds a listener, or says that there are too many.
func (h *hub) join(most int) (*listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.in) >= most {
		return nil, busy("event streams")
	}
	l := &listener{queue: make(chan []byte, queueLength)}
	h.in[l] = struct{}{}
	return l, nil
}

func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.in[l]; ok {
		delete(h.in, l)
		close(l.queue)
	}
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.in)
}

// tell sends an event to all.
func (h *hub) tell(event string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return // nothing of ours fails to encode; a NaN would, and is kept out by the tables
	}
	h.send(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, data))
}

// beat keeps streams alive through whatever lies between.
func (h *hub) beat() { h.send([]byte(": \n\n")) }

func (h *hub) send(text []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.in {
		select {
		case l.queue <- text:
		default:
			delete(h.in, l)
			close(l.queue)
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for l := range h.in {
		delete(h.in, l)
		close(l.queue)
	}
}

// stream is an answer that goes on: server-sent events.
type stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &stream{w, http.NewResponseController(w)}
}

func (s *stream) write(text []byte) error {
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.rc.Flush()
}

func (s *stream) tell(event string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, data))
}

// events streams what happens to the runs.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	l, err := s.runs.hub.join(s.limits.Streams)
	if err != nil {
		s.fail(w, err)
		return
	}
	defer s.runs.hub.leave(l)
	out := newStream(w)
	if err := out.write([]byte("retry: 2000\n\n")); err != nil {
		return
	}
	if err := out.tell("hello", map[string]any{"version": s.o.Version, "time": time.Now().UTC()}); err != nil {
		return
	}
	for {
		select {
		case text, ok := <-l.queue:
			if !ok || out.write(text) != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

package serve

import (
	"context"
	"net/http"
	"time"
)

// freePass is for work that has a place already.
func freePass(context.Context) (leave func(), err error) { return func() {}, nil }

// streamBeat keeps a stream alive through whatever lies between.
const streamBeat = 15 * time.Second

// keyMost is how long an Idempotency-Key may be.
const keyMost = 200

// submitJob takes what POST /api/v1/solve takes and answers at once.
func (s *Server) submitJob(w http.ResponseWriter, r *http.Request) {
	state, fresh, err := s.submitted(w, r)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Location", "/api/v1/jobs/"+state.ID)
	status := http.StatusOK
	if fresh {
		status = http.StatusAccepted
	}
	s.answerAs(w, status, state)
}

func (s *Server) submitted(w http.ResponseWriter, r *http.Request) (jobState, bool, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > keyMost {
		return jobState{}, false, refuse(http.StatusBadRequest, "Idempotency-Key has %d characters: up to %d are taken", len(key), keyMost)
	}
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return jobState{}, false, refuse(http.StatusBadRequest, "Idempotency-Key has characters that are not printable ASCII")
		}
	}
	text, err := s.bodyJSON(w, r)
	if err != nil {
		return jobState{}, false, err
	}
	var ask solveRequest
	if err := ask.decode(text, &ask); err != nil {
		return jobState{}, false, err
	}
	p, _, err := ask.check(s.limits.forJobs())
	if err != nil {
		return jobState{}, false, err
	}
	return s.jobs.submit(&ask, p, text, key, s.address(r), ownerOf(r))
}

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) {
	s.answer(w, map[string]any{"jobs": s.jobs.list(ownerOf(r))})
}

func (s *Server) oneJob(w http.ResponseWriter, r *http.Request) {
	state, _, err := s.jobs.get(r.PathValue("id"), ownerOf(r))
	if err != nil {
		s.fail(w, err)
		return
	}
	s.answer(w, state)
}

func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request) {
	state, err := s.jobs.stop(r.PathValue("id"), ownerOf(r))
	if err != nil {
		s.fail(w, err)
		return
	}
	s.answer(w, state)
}

func (s *Server) deleteJob(w http.ResponseWriter, r *http.Request) {
	if err := s.jobs.forget(r.PathValue("id"), ownerOf(r)); err != nil {
		s.fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// jobEvents follows a job: "job" as it stands, "progress" while a search improves, and "job" again
// with its result, which ends the stream.
func (s *Server) jobEvents(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	_, h, err := s.jobs.get(id, ownerOf(r))
	if err != nil {
		s.fail(w, err)
		return
	}
	l, err := h.join(s.limits.Streams)
	if err == nil {
		defer h.leave(l)
	}
	// as it stands now: what happens from here on is in the queue
	state, _, gone := s.jobs.get(id, ownerOf(r))
	switch {
	case gone != nil:
		s.fail(w, gone)
		return
	case err != nil && !state.ended(): // no place, or the server stops
		s.fail(w, err)
		return
	}
	out := newStream(w)
	if out.write([]byte("retry: 2000\n\n")) != nil || out.tell("job", state) != nil || state.ended() {
		return
	}
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	for {
		select {
		case text, ok := <-l.queue:
			if !ok || out.write(text) != nil {
				return
			}
		case <-beat.C:
			if out.write([]byte(": \n\n")) != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

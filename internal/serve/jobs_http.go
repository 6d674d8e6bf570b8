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

// jobList is what GET /api/v1/jobs answers.
type jobList struct {
	Jobs []jobState `json:"jobs"` // the newest first, without routes
}

var (
	jobID     = []param{{"id", "path", "string pattern=^[A-Z2-7]{26}$", "Of the job."}}
	ofJobs    = []string{"getJob", "cancelJob", "deleteJob"}
	jobRoutes = []route{
		{at: "POST /api/v1/jobs", id: "submitJob", tag: "jobs", text: "Submits a long solve and answers at once with its `id`",
			more:   "The same Idempotency-Key with the same body is the same job and is answered with 200; with another body it is refused. Up to 100 jobs of one address may not have ended, and 1,000 jobs are kept, those that ended for a week.",
			params: []param{{"Idempotency-Key", "header", "string most=200 pattern=^[\\x20-\\x7e]*$", "A name of the client's own for this request."}},
			takes:  []media{{kind: "application/json", of: solveRequest{}, example: solveExample}}, do: writes((*Server).submitJob), links: ofJobs,
			gives: []reply{{status: 202, text: "Taken. Location names it.", content: asJSON(jobState{}), location: "Where the job is."}, {status: 200, text: "This job was submitted before.", content: asJSON(jobState{})}}},
		{at: "GET /api/v1/jobs", id: "listJobs", tag: "jobs", text: "Lists every job, without routes", do: answers((*Server).listJobs)},
		{at: "GET /api/v1/jobs/{id}", id: "getJob", tag: "jobs", text: "Shows a job as it stands, with its result", params: jobID, do: answers((*Server).oneJob)},
		{at: "DELETE /api/v1/jobs/{id}", id: "deleteJob", tag: "jobs", text: "Cancels a job and takes it away", params: jobID, do: writes((*Server).deleteJob), gives: []reply{{status: 204, text: "Gone."}}},
		{at: "POST /api/v1/jobs/{id}/cancel", id: "cancelJob", tag: "jobs", text: "Cancels a job; its best routes stay with it", params: jobID, do: answers((*Server).cancelJob)},
		{at: "GET /api/v1/jobs/{id}/events", id: "followJob", tag: "jobs", text: "Follows a job, as server-sent events",
			more:   "`job` as it stands when the stream begins; `progress` while a search improves; `job` with its result, which ends the stream.",
			params: jobID, do: writes((*Server).jobEvents), gives: eventStream("A stream that ends with the job.")},
	}
)

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

func (s *Server) listJobs(_ http.ResponseWriter, r *http.Request) (jobList, error) {
	return jobList{s.jobs.list(ownerOf(r))}, nil
}

func (s *Server) oneJob(_ http.ResponseWriter, r *http.Request) (jobState, error) {
	state, _, err := s.jobs.get(r.PathValue("id"), ownerOf(r))
	return state, err
}

func (s *Server) cancelJob(_ http.ResponseWriter, r *http.Request) (jobState, error) {
	return s.jobs.stop(r.PathValue("id"), ownerOf(r))
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

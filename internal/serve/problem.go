package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"haul/internal/vrp/files"
)

// problem is an error answer of the API (RFC 9457). Detail is one line for a person.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status" api:"min=400 max=599"`
	Detail string `json:"detail"` // one line for a person

	Missing string `json:"missing,omitempty"` // a parameter that would make the request whole

	retry int  // seconds, where trying again helps
	file  bool // it is about one of several files
}

func (p *problem) Error() string { return p.Detail }

func refuse(status int, format string, args ...any) error {
	return &problem{Status: status, Detail: fmt.Sprintf(format, args...)}
}

// statusGone is what a client that left is answered, for the metrics alone.
const statusGone = 499

// asProblem words any error. What a client did wrong was said by refuse; the rest is this server's
// fault.
func asProblem(err error) *problem {
	var p *problem
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &p):
	case errors.As(err, &large):
		p = tooLarge(large.Limit).(*problem)
	case errors.Is(err, errSlow):
		p = &problem{Status: http.StatusRequestTimeout, Detail: errSlow.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		p = &problem{Status: http.StatusServiceUnavailable, Detail: "this took longer than a request may take", retry: 10}
	case errors.Is(err, context.Canceled):
		p = &problem{Status: statusGone, Detail: "the client has gone, or the server stops"}
	default:
		p = &problem{Status: http.StatusInternalServerError, Detail: err.Error()}
	}
	q := *p
	q.Type, q.Title, q.Detail = "about:blank", http.StatusText(q.Status), line(q.Detail)
	return &q
}

// line folds what came from a file or a client into one line.
func line(s string) string { return strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ") }

func (s *Server) fail(w http.ResponseWriter, err error) {
	p := asProblem(err)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Del("Content-Encoding")
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retry))
	}
	text, _ := json.Marshal(p) // words and numbers: it cannot fail
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // who does not take the answer is gone
}

// answer sends a JSON object.
func (s *Server) answer(w http.ResponseWriter, v any) { s.answerAs(w, http.StatusOK, v) }

func (s *Server) answerAs(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// decode reads a JSON body strictly: one object, known keys, nothing behind it.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, dst any) error {
	text, err := s.bodyJSON(w, r)
	if err != nil {
		return err
	}
	if err := files.Decode(text, dst); err != nil {
		return refuse(http.StatusBadRequest, "the body is not what is expected: %s", err)
	}
	return nil
}

// decodeProblem reads a JSON body of a problem and further keys.
func (s *Server) decodeProblem(w http.ResponseWriter, r *http.Request, in *instance, beside any) error {
	text, err := s.bodyJSON(w, r)
	if err != nil {
		return err
	}
	return in.decode(text, beside)
}

// decode reads the keys of a problem into the instance and all others into beside.
func (in *instance) decode(text []byte, beside any) (err error) {
	switch in.draft, err = files.ReadDraft(text, beside); {
	case err == nil:
		return nil
	case files.IsShape(err):
		return refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	return refuse(http.StatusBadRequest, "the body is not what is expected: %s", err)
}

// bodyJSON is a JSON body, whole.
func (s *Server) bodyJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if t := r.Header.Get("Content-Type"); t != "" {
		if kind, _, err := mime.ParseMediaType(t); err != nil || kind != "application/json" {
			return nil, refuse(http.StatusUnsupportedMediaType, "the body is %s: send application/json", line(t))
		}
	}
	if packed := r.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		return nil, refuse(http.StatusUnsupportedMediaType, "the body is packed (Content-Encoding: %s): send it as it is", line(packed))
	}
	body, _, err := s.body(w, r, s.limits.Body, s.limits.JSONTime)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(body)
}

// noSuch tells a path that does not exist from one that is asked for in the wrong way.
func (s *Server) noSuch(w http.ResponseWriter, r *http.Request) {
	if allowed := s.methods(r); allowed != "" {
		w.Header().Set("Allow", allowed)
		s.fail(w, refuse(http.StatusMethodNotAllowed, "%s takes %s, not %s", line(r.URL.Path), allowed, line(r.Method)))
		return
	}
	s.fail(w, refuse(http.StatusNotFound, "there is no %s: /api/v1/openapi.json lists what there is", line(r.URL.Path)))
}

// methods are those that a path takes, as Allow lists them.
func (s *Server) methods(r *http.Request) string {
	var out []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); strings.HasPrefix(pattern, method+" ") {
			out = append(out, method)
		}
	}
	return strings.Join(out, ", ")
}

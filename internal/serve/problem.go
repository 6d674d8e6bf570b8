package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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
	Status int    `json:"status"`
	Detail string `json:"detail"`

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
	return decodeStrictly(text, dst)
}

// decodeStrictly takes known keys and no null: what is left out asks for nothing, and a null that a
// program wrote for a number would be taken for that in silence.
func decodeStrictly(text []byte, dst any) error {
	if holdsNull(text) {
		return refuse(http.StatusBadRequest, "the body holds null: leave a key out where it asks for nothing")
	}
	if err := files.Decode(wholeNumbers(text), dst); err != nil {
		return refuse(http.StatusBadRequest, "the body is not what is expected: %s", err)
	}
	return nil
}

// holdsNull says that a JSON text has null as a value.
func holdsNull(text []byte) bool {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == 'n' && bytes.HasPrefix(text[i:], []byte("null")):
			return true
		}
	}
	return false
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

// wholeNumbers writes numbers that are whole without a point: to JSON Schema 63.0 is an integer,
// and Python writes one so when it was a float.
func wholeNumbers(text []byte) []byte {
	var out []byte // nil while nothing was changed
	kept, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '-' || c >= '0' && c <= '9'):
			end := i + 1
			for end < len(text) && bytes.IndexByte([]byte("0123456789.eE+-"), text[end]) >= 0 {
				end++
			}
			if token := text[i:end]; bytes.ContainsAny(token, ".eE") && json.Valid(token) {
				if v, err := strconv.ParseFloat(string(token), 64); err == nil && v == math.Trunc(v) && math.Abs(v) < 1<<63 {
					out = strconv.AppendFloat(append(out, text[kept:i]...), v, 'f', -1, 64)
					kept = end
				}
			}
			i = end - 1
		}
	}
	if kept == 0 {
		return text
	}
	return append(out, text[kept:]...)
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

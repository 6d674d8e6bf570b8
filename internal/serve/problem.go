package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// problem is what an API answers where it cannot do what was asked (RFC 9457). Detail is one line
// for a person.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	retry  int    // seconds, where trying again helps
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
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who does not take the answer is gone
}

// answer sends a JSON object.
func (s *Server) answer(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	_, _ = w.Write(append(text, '\n'))
}

// maxDepth is how deep a body may nest: no request needs more than three.
const maxDepth = 16

// decode reads a JSON body strictly: one object, known keys, nothing behind it.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, dst any) error {
	if t := r.Header.Get("Content-Type"); t != "" && !strings.HasPrefix(t, "application/json") {
		return refuse(http.StatusUnsupportedMediaType, "the body is %s: send application/json", line(t))
	}
	body, _, err := s.body(w, r, s.limits.Body, s.limits.JSONTime)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	deep, null := scan(text)
	switch {
	case deep:
		return refuse(http.StatusBadRequest, "the body nests more than %d deep", maxDepth)
	case null:
		return refuse(http.StatusBadRequest, "a list in the body holds null, which is no number: many programs write it for NaN")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return refuse(http.StatusBadRequest, "the body is not what is expected: %s", mistaken(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return refuse(http.StatusBadRequest, "there is more than one JSON object in the body")
	}
	return nil
}

// mistaken words what a decoder found, in the API's terms and not in the program's.
func mistaken(err error) string {
	var of *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return "it is empty, and a JSON object is needed"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends in the middle of its JSON"
	case !errors.As(err, &of):
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	takes := "something else"
	switch kind := of.Type.Kind(); {
	case kind == reflect.Bool:
		takes = "true or false"
	case kind == reflect.String:
		takes = "text"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		takes = fmt.Sprintf("whole numbers of %d bits", of.Type.Bits())
	case kind == reflect.Float64:
		takes = "numbers"
	case kind == reflect.Slice:
		takes = "a list"
	case kind == reflect.Struct:
		takes = "an object"
	}
	key := of.Field[strings.LastIndexByte(of.Field, '.')+1:]
	return fmt.Sprintf("%s takes %s, not %s", or(key, "it"), takes, line(strings.TrimPrefix(of.Value, "number ")))
}

// scan says that brackets nest deeper than maxDepth, before a decoder follows them, and that a list
// holds null, which it would take for 0.
func scan(text []byte) (deep, null bool) {
	depth, quoted := 0, false
	var opened [maxDepth + 1]byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return true, null
			}
			opened[max(0, depth)] = c
		case c == ']' || c == '}':
			depth--
		// not Infinity, which is no JSON at all
		case c == 'n' && depth > 0 && opened[depth] == '[' && bytes.HasPrefix(text[i:], []byte("null")):
			null = true
		}
	}
	return false, null
}

// noSuch tells a path that does not exist from one that is asked for in the wrong way.
func (s *Server) noSuch(w http.ResponseWriter, r *http.Request) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/api/" {
			w.Header().Set("Allow", method)
			s.fail(w, refuse(http.StatusMethodNotAllowed, "%s takes %s, not %s", line(r.URL.Path), method, line(r.Method)))
			return
		}
	}
	s.fail(w, refuse(http.StatusNotFound, "there is no %s: /api/v1/openapi.json lists what there is", line(r.URL.Path)))
}

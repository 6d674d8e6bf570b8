package serve

import (
	"bytes"
	"container/list"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"haul/internal/doctor"
	"haul/internal/limits"
)

// maxTraces bounds the files of one request.
const maxTraces = 256

// diagnosis is what POST /api/v1/doctor answers: the object that haul doctor --json prints, and
// where its page is.
type diagnosis struct {
	Kind   string `json:"kind" api:"enum=trace|ranks|diff"`
	Page   string `json:"page"`   // where the page with the timeline is, for a while
	Report any    `json:"report"` // what haul doctor --json prints

	LeftOut []string `json:"left_out,omitempty"` // of several files, those that could not be read, with the reason
}

var doctorRoutes = []route{
	{at: "POST /api/v1/doctor", id: "diagnose", tag: "doctor", text: "Says why a run is slow, from its traces",
		more:   "The body is one trace, or a form of several files: the ranks of one job, or with `diff=1` before and after. Traces are read when all of them have come, and not kept. Of several, `left_out` names those that cannot be read.",
		params: []param{{"name", "query", "string", "Of the one trace."}, {"diff", "query", "string enum=1", "Compare two traces."}},
		takes: []media{{kind: octets, of: aFile}, {kind: "multipart/form-data",
			of: raw{"", `{"type":"object","properties":{"trace":{"type":"array","items":{"type":"string","format":"binary"},"minItems":1,"maxItems":256}},"required":["trace"]}`}}},
		do: answers((*Server).diagnose)},
	{at: "GET /api/v1/doctor/pages/{id}", id: "getDoctorPage", tag: "doctor", text: "Gives the page that haul doctor --html would write", do: writes((*Server).doctorPage),
		params: []param{{"id", "path", "string letters=1", "As a diagnosis names it."}}, gives: []reply{{status: 200, text: "A page.", content: []media{{kind: "text/html"}}}}},
}

// diagnose reads traces once all of them are here, and throws them away then. Several are ranks of
// one job; with ?diff=1 two are before and after.
func (s *Server) diagnose(w http.ResponseWriter, r *http.Request) (*diagnosis, error) {
	q := r.URL.Query()
	if err := onlyKnown(q, "name", "diff"); err != nil {
		return nil, err
	}
	if d := q.Get("diff"); q.Has("diff") && d != "1" {
		return nil, refuse(http.StatusBadRequest, "diff is %q: 1 is what can be asked for", line(d))
	}
	if r.ContentLength > s.limits.Upload {
		return nil, tooLarge(s.limits.Upload)
	}
	done, err := s.clients.enter(s.address(r), "traces", clientLong)
	if err != nil {
		return nil, err
	}
	defer done()
	if r.Body, err = s.upload(w, r); err != nil {
		return nil, err
	}
	defer r.Body.Close()
	leave, err := s.doctor.enter(r.Context())
	if err != nil {
		return nil, err
	}
	defer leave()
	reports, left, err := s.readTraces(r)
	if err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	out, err := s.conclude(reports, r.URL.Query().Get("diff") == "1")
	if err == nil {
		out.LeftOut = left
	} else if len(left) > 0 {
		err = refuse(http.StatusUnprocessableEntity, "%s; %s", err, left[0])
	}
	return out, err
}

// upload takes a request's body in whole.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) (io.ReadCloser, error) {
	leave, err := s.uploads.enter(r.Context())
	if err != nil {
		return nil, err
	}
	defer leave()
	body, slow, err := s.body(w, r, s.limits.Upload, s.limits.UploadTime)
	if err != nil {
		return nil, err
	}
	all, err := spool(body)
	switch {
	case slow.late:
		return nil, errSlow
	case err != nil:
		return nil, s.traceError(r.Context(), err)
	}
	return all, nil
}

// conclude puts the reports together as the command does, and keeps the page.
func (s *Server) conclude(reports []*doctor.Report, diff bool) (*diagnosis, error) {
	var out diagnosis
	var write func(io.Writer) error
	if err := doctor.Together(reports, diff); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	switch {
	case diff && len(reports) != 2:
		return nil, refuse(http.StatusUnprocessableEntity, "two traces are compared, before and after; these are %d", len(reports))
	case diff:
		d := doctor.Compare(reports[0], reports[1])
		out.Kind, out.Report, write = "diff", d, d.WriteHTML
	case len(reports) == 1:
		out.Kind, out.Report, write = "trace", reports[0], reports[0].WriteHTML
	default:
		j := doctor.JoinRanks(reports)
		out.Kind, out.Report, write = "ranks", j, j.WriteHTML
	}
	var page bytes.Buffer
	if err := write(&page); err != nil {
		return nil, err
	}
	out.Page = "/api/v1/doctor/pages/" + s.pages.keep(page.Bytes())
	return &out, nil
}

// readTraces reads a body of one trace, or a form of several files, without keeping any of it. Of
// several, one that cannot be read is left out and named, as the command does; where none can, the
// first error is returned.
func (s *Server) readTraces(r *http.Request) (reports []*doctor.Report, left []string, err error) {
	ctx := r.Context()
	budget := doctor.NewBudget(s.limits.Unpacked, s.limits.Input)
	each := func(name string, t *doctor.Trace) error {
		report, err := doctor.Diagnose(t)
		if err != nil {
			return doctor.InFile(name, err)
		}
		report.File = name
		if reports = append(reports, report); len(reports) > maxTraces {
			return refuse(http.StatusUnprocessableEntity, "more than %d traces", maxTraces)
		}
		return nil
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		err := doctor.LoadReader(ctx, fileName(r.URL.Query().Get("name")), r.Body, budget, each)
		return reports, nil, s.traceError(ctx, err)
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, nil, refuse(http.StatusBadRequest, "the form cannot be read: %v", err)
	}
	var first error
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, s.traceError(ctx, err)
		}
		if part.FileName() == "" {
			continue
		}
		// Together they may hold no more than one.
		err = s.traceError(ctx, doctor.LoadReader(ctx, fileName(part.FileName()), part, budget, each))
		switch {
		case err == nil:
		case !unreadable(err):
			return nil, nil, err
		default:
			if left = append(left, "left out: "+line(err.Error())); len(left) > maxTraces {
				return nil, nil, refuse(http.StatusUnprocessableEntity, "more than %d files that are no traces", maxTraces)
			}
			first = or(first, err)
		}
	}
	switch {
	case len(reports) == 0 && first != nil:
		return nil, nil, first
	case len(reports) == 0:
		return nil, nil, refuse(http.StatusBadRequest, "there is no trace in the request")
	}
	return reports, left, nil
}

// unreadable says that a file is no trace, which is no reason to refuse those beside it.
func unreadable(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.Status == http.StatusUnprocessableEntity && p.file
}

// fileName is what a client calls its file: a word to show.
func fileName(s string) string {
	base := line(path.Base(strings.ReplaceAll(s, `\`, "/")))
	if strings.Trim(base, "./") == "" { // what path.Base makes of nothing
		return "trace"
	}
	return base
}

// traceError tells a limit from a file that is no trace.
func (s *Server) traceError(ctx context.Context, err error) error {
	var large *http.MaxBytesError
	var over *limits.Error
	var refused *problem
	switch {
	case err == nil || errors.As(err, &refused) || errors.Is(err, errSlow):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &over):
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, doctor.ErrTooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "the trace unpacks to more than %s: haul doctor reads it from the disk", size(s.limits.Unpacked))
	case strings.HasPrefix(err.Error(), "multipart:"):
		return refuse(http.StatusBadRequest, "the upload was cut off, or is no form")
	}
	return &problem{Status: http.StatusUnprocessableEntity, Detail: err.Error(), file: true}
}

// pages keeps the last pages that were made, for the frame that shows them and for a tab of their
// own.
type pages struct {
	mu    sync.Mutex
	all   map[string]*list.Element // of *keptPage
	order *list.List               // the newest in front
	bytes int
}

type keptPage struct {
	id   string
	text []byte
}

const (
	keepPages     = 16
	keepPageBytes = 96 << 20
)

func newPages() *pages { return &pages{all: map[string]*list.Element{}, order: list.New()} }

func (p *pages) keep(text []byte) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &keptPage{id: rand.Text(), text: text}
	p.all[k.id] = p.order.PushFront(k)
	p.bytes += len(text)
	for p.order.Len() > 1 && (p.order.Len() > keepPages || p.bytes > keepPageBytes) {
		old := p.order.Remove(p.order.Back()).(*keptPage)
		delete(p.all, old.id)
		p.bytes -= len(old.text)
	}
	return k.id
}

func (p *pages) get(id string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.all[id]
	if e == nil {
		return nil
	}
	p.order.MoveToFront(e)
	return e.Value.(*keptPage).text
}

// doctorCSP lets the page's one script run, by its hash, and its own style; it reaches nothing
// else.
var doctorCSP = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(doctor.PageScript()))
	return "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; style-src 'unsafe-inline'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
})

func (s *Server) doctorPage(w http.ResponseWriter, r *http.Request) {
	text := s.pages.get(r.PathValue("id"))
	if text == nil {
		s.fail(w, refuse(http.StatusNotFound, "this page is not kept any more: drop the trace again"))
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", doctorCSP())
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
}

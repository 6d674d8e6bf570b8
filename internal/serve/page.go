package serve

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The page is files of this folder, sent unchanged, except that the style sheet is placed inside
// the page: a browser that has just started takes as long to request it as for everything else
// before the first paint. There are no templates, and nothing is made per request. Names of
// runs, traces and files reach the page as JSON and are inserted as text, never as markup.

//go:embed page
var pageFiles embed.FS

// rooms are the addresses that are the page itself; its script shows the room.
var rooms = map[string]bool{"/runs": true, "/routes": true, "/doctor": true}

const (
	sheetName = "page/style.css"
	sheetLink = `<link rel="stylesheet" href="/style.css">`
)

// sheet is the page's style sheet.
func sheet() []byte {
	text, err := pageFiles.ReadFile(sheetName)
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return text
}

// sheetSum is how the page's policy names the sheet.
func sheetSum() string {
	sum := sha256.Sum256(sheet())
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// asset is a file of the page, ready to send.
type asset struct {
	kind, tag    string
	text, packed []byte
}

var assets = sync.OnceValue(func() map[string]*asset {
	out := map[string]*asset{}
	kinds := map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml", ".webmanifest": "application/manifest+json"}
	// an embedded folder can be read
	_ = fs.WalkDir(pageFiles, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := pageFiles.ReadFile(name)
		if err != nil {
			return err
		}
		text = bytes.Replace(text, []byte(sheetLink), slices.Concat([]byte("<style>"), sheet(), []byte("</style>")), 1)
		a := &asset{text: text, kind: kinds[path.Ext(name)]}
		if a.kind == "" {
			a.kind = or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream")
		}
		sum := sha256.Sum256(text)
		a.tag = `"` + hex.EncodeToString(sum[:8]) + `"`
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one that there is
		_, _ = z.Write(text)
		_ = z.Close()
		a.packed = b.Bytes()
		out[strings.TrimPrefix(name, "page")] = a
		return nil
	})
	return out
})

// home leads to the page's first room.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/runs", http.StatusFound)
}

// page sends the page's files.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		allowed := or(s.methods(r), http.MethodGet)
		w.Header().Set("Allow", allowed)
		s.fail(w, refuse(http.StatusMethodNotAllowed, "%s takes %s, not %s", line(name), allowed, line(r.Method)))
		return
	case rooms[name]:
		name = "/index.html"
	}
	a, status := assets()[name], http.StatusOK
	if a == nil && strings.Contains(r.Header.Get("Accept"), "text/html") { // a person, not a program
		a, status = assets()["/404.html"], http.StatusNotFound
	}
	if a == nil {
		s.fail(w, refuse(http.StatusNotFound, "there is no %s: the rooms are /runs, /routes and /doctor", line(r.URL.Path)))
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", pageCSP)
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache") // and an ETag: another build's files are never mixed in
	h.Set("ETag", a.tag)
	h.Set("Vary", "Accept-Encoding")
	if status == http.StatusOK && r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	text := a.text
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		text = a.packed
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

//go:embed openapi.json
var openAPIText []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPIText)
}

// about is what GET /api/v1/about answers.
type about struct {
	Version string      `json:"version"`
	Runs    string      `json:"runs"` // the folder of runs
	Cores   int         `json:"cores"`
	Limits  aboutLimits `json:"limits"`
}

type aboutLimits struct {
	Customers  int     `json:"customers"` // of an instance
	PolicySize int     `json:"policy_customers"`
	ExactSize  int     `json:"exact_customers"`
	Search     float64 `json:"search_seconds"`
	JobTime    float64 `json:"job_seconds"`
	Upload     int64   `json:"upload_bytes"`
	Unpacked   int64   `json:"unpacked_bytes"`
	Count      int     `json:"evaluation_instances"`
	Batch      int     `json:"batch_problems"` // of POST /api/v1/batch
}

func (s *Server) about(http.ResponseWriter, *http.Request) (about, error) {
	l := s.limits
	return about{s.o.Version, s.o.Runs, runtime.GOMAXPROCS(0), aboutLimits{l.Customers, l.PolicySize, exactMost,
		l.Search.Seconds(), l.JobTime.Seconds(), l.Upload, l.Unpacked, l.Count, batchMost}}, nil
}

var serverRoutes = []route{
	{at: "GET /api/v1/openapi.json", id: "getOpenAPI", tag: "server", text: "Describes the API", do: writes((*Server).openAPI),
		gives: []reply{{status: 200, text: "Done.", content: asJSON(anything)}}},
	{at: "GET /api/v1/about", id: "getAbout", tag: "server", text: "Says the version and the limits of this server", do: answers((*Server).about)},
	{at: "GET /{$}", id: "getPage", tag: "server", text: "Leads to the page", do: writes((*Server).home),
		gives: []reply{{status: 302, text: "Its first part.", location: "Where it is."}}},
	{at: "GET " + healthPath, id: "getHealth", tag: "server", text: "Says that the server is alive", open: true, do: writes((*Server).healthz),
		gives: []reply{plain(200, "It is.")}},
	{at: "GET " + readyPath, id: "getReadiness", tag: "server", text: "Says whether requests should be sent here",
		more: "Not while the server stops, and not if jobs cannot be kept.", open: true, do: writes((*Server).readyz),
		gives: []reply{plain(200, "They should."), plain(503, "The server stops, or cannot keep jobs.")}},
	{at: "GET /metrics", id: "getMetrics", tag: "server", text: "Gives metrics for Prometheus",
		do:    writes(func(s *Server, w http.ResponseWriter, r *http.Request) { s.metrics.ServeHTTP(w, r) }),
		gives: []reply{plain(200, "Done.")}},
}

package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// What a reader could break: the order of checks. A page of another origin, or one whose name
// was rebound to this machine's address, must be refused before its request is read; then comes
// the token, then the route.

// pageCSP is the policy of the page: its own files, no script inline, and of styles inline the one
// sheet, by its sum.
var pageCSP = "default-src 'none'; script-src 'self'; style-src 'self' '" + sheetSum() + "'; img-src 'self' blob:; connect-src 'self'; frame-src 'self'; " +
	"manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// dataCSP is the policy of everything else: should a browser show it as a document, it may do
// nothing.
const dataCSP = "default-src 'none'; frame-ancestors 'none'; sandbox"

func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		body := &incoming{ReadCloser: r.Body}
		out := &answered{ResponseWriter: w, rc: http.NewResponseController(w), stall: s.limits.Stall, body: body}
		if r.Body != http.NoBody {
			r.Body = body
		} else {
			body.ended.Store(true)
		}
		h := out.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", dataCSP)
		h.Set("Cache-Control", "no-store")
		s.metrics.inFlight.Add(1)
		var took time.Duration // until it was answered
		defer func() {
			out.settle()
			took = or(took, time.Since(began))
			s.metrics.inFlight.Add(-1)
			s.metrics.request(r, out.status, took)
			s.logged(r, out, took)
		}()
		if !isHealth(r.URL.Path) {
			if err := s.clients.spend(s.address(r), s.limits.Rate, began); err != nil {
				s.fail(out, err)
				return
			}
			leave, err := s.clients.enter(s.address(r), "requests", s.limits.Streams+clientRequests)
			if err != nil {
				s.fail(out, err)
				return
			}
			defer leave()
		}
		if err := s.admit(r); err != nil {
			s.fail(out, err)
			return
		}
		if len(r.TransferEncoding) > 0 {
			// Its length may have been stated twice, in two ways: who is before this server may
			// take the end of its body for another request. Nothing behind it is read.
			h.Set("Connection", "close")
		}
		r = r.WithContext(context.WithValue(r.Context(), ownerKey{}, new(string)))
		if !s.known(out, r) {
			return
		}
		next.ServeHTTP(out, r)
		took = time.Since(began)
		if out.status == http.StatusRequestEntityTooLarge && (body.began.Load() || r.Header.Get("Expect") == "") {
			out.readOn(s.limits.JSONTime)
		}
	})
}

// admit judges who a request pretends to be for and where it comes from.
func (s *Server) admit(r *http.Request) error {
	if !s.hostAllowed(r.Host) {
		return refuse(http.StatusMisdirectedRequest, "this server does not answer for the host %q: open it by its address, or start it with --host", hostName(r.Host))
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return refuse(http.StatusForbidden, "requests of other sites are refused")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return refuse(http.StatusForbidden, "requests of other origins are refused")
		}
	}
	return nil
}

// hostAllowed takes loopback's names, literal addresses where the server listens beyond loopback,
// and the names it was given. A port says nothing: it may have been forwarded.
func (s *Server) hostAllowed(host string) bool {
	name := hostName(host)
	if name == "localhost" || slices.ContainsFunc(s.o.Hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && (addr.IsLoopback() || s.o.Token != "")
}

func hostName(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil && !strings.ContainsFunc(port, func(c rune) bool { return c < '0' || c > '9' }) {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(host, "."), "["), "]"))
}

const cookieName = "haul_token"

// known asks for the token, where there is one. A browser shows it once, in the address, and keeps
// it as a cookie that no script sees.
func (s *Server) known(w http.ResponseWriter, r *http.Request) bool {
	if s.o.Token == "" && len(s.o.Keys) == 0 || isHealth(r.URL.Path) {
		return true
	}
	// Clients of openrouteservice send their key without a word before it.
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.isToken(given) || s.isKey(r, given) {
		return true
	}
	if c, err := r.Cookie(cookieName); err == nil && s.isToken(c.Value) {
		return true
	}
	if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") && s.isToken(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: cookieName, Value: s.o.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		to := *r.URL
		q := to.Query()
		q.Del("token")
		to.RawQuery, to.Host, to.Scheme = q.Encode(), "", ""
		to.Path = "/" + strings.TrimLeft(to.Path, "/") // //host would lead elsewhere
		http.Redirect(w, r, to.RequestURI(), http.StatusSeeOther)
		return false
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="haul"`)
	s.fail(w, refuse(http.StatusUnauthorized, "open the address that haul serve printed, which has the token in it, or send it as Authorization: Bearer"))
	return false
}

// ownerKey is the key of a request's context under which its owner stands.
type ownerKey struct{}

// ownerOf is who sent a request: "" for whoever has the token, or without keys for everybody, else
// the sum of the key.
func ownerOf(r *http.Request) string {
	owner, _ := r.Context().Value(ownerKey{}).(*string)
	if owner == nil {
		return ""
	}
	return *owner
}

// isKey notes the owner of a request whose key is one of the server's.
func (s *Server) isKey(r *http.Request, got string) bool {
	sum := sha256.Sum256([]byte(got))
	found := false
	for _, key := range s.o.Keys {
		want := sha256.Sum256([]byte(key))
		found = subtle.ConstantTimeCompare(sum[:], want[:]) == 1 || found
	}
	if owner, _ := r.Context().Value(ownerKey{}).(*string); found && owner != nil {
		*owner = hex.EncodeToString(sum[:16])
	}
	return found
}

// isToken compares in constant time, whatever the length. No token is none that could be sent.
func (s *Server) isToken(got string) bool {
	if s.o.Token == "" {
		return false
	}
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(s.o.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// healthPath is answered without a token, and through the side door where there is no room;
// readyPath without a token.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

func isHealth(path string) bool { return path == healthPath || path == readyPath }

// healthy says that a request asks for health in a way that is answered.
func (s *Server) healthy(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == healthPath && s.admit(r) == nil
}

// incoming is a request's body as the client sends it. What is wrong with it on the wire is the
// client's fault.
type incoming struct {
	io.ReadCloser
	began atomic.Bool // some of it has come
	ended atomic.Bool // all of it has come
}

func (b *incoming) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.began.Store(true)
	}
	timeout := net.Error(nil)
	switch {
	case err == io.EOF:
		b.ended.Store(true)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = refuse(http.StatusBadRequest, "the body ends before its length or its last chunk")
	case err != nil && !(errors.As(err, &timeout) && timeout.Timeout()):
		err = refuse(http.StatusBadRequest, "the body cannot be read: %s", err)
	}
	return n, err
}

// answered remembers the status and gives every write a deadline, so that a client that stops
// reading is let go. A long answer is written piece by piece: one that reads slowly is not.
type answered struct {
	http.ResponseWriter
	rc      *http.ResponseController
	stall   time.Duration
	body    *incoming // the request's; nil where nobody asks for it
	settled bool
	status  int
	bytes   int64
}

// linger is how long the rest of a body is waited for once its request has an answer. A client that
// still sends would not read the answer if its connection were reset at once.
const linger = time.Second

// settle ends a connection whose request is answered before its body has come. net/http would read
// a quarter of a megabyte of it before it answers, and again after, for as long as that takes.
func (a *answered) settle() {
	if a.settled || a.body == nil {
		return
	}
	if a.settled = true; !a.body.ended.Load() {
		a.Header().Set("Connection", "close")
		_ = a.rc.SetReadDeadline(time.Now().Add(linger)) // a connection without deadlines is a test's
	}
}

// readOnRate is how many bytes of the rest of a body must come within readOnWait to be read on: at
// this rate it costs its sender more than it costs this server. A busy client may send nothing for
// a second.
const (
	readOnRate = 64 << 10
	readOnWait = 5 * time.Second
)

// readOn sends the answer and takes the rest of the body, for some time: many clients read no
// answer before they have sent everything, and a connection that is closed under them is reset,
// so that they never learn that their file is too large.
func (a *answered) readOn(most time.Duration) {
	if a.body.ended.Load() || a.rc.Flush() != nil {
		return
	}
	end, buffer := time.Now().Add(most), make([]byte, readOnRate)
	for {
		if a.rc.SetReadDeadline(earlier(time.Now().Add(readOnWait), end)) != nil {
			return
		}
		if _, err := io.ReadFull(a.body, buffer); err != nil {
			return
		}
	}
}

// writeAtOnce is how many bytes a client must take within the stall.
const writeAtOnce = 64 << 10

func (a *answered) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	if status == statusGone {
		status = http.StatusServiceUnavailable
	}
	a.settle()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answered) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.settle()
	for n := 0; ; {
		_ = a.rc.SetWriteDeadline(time.Now().Add(a.stall)) // a connection without deadlines is a test's
		m, err := a.ResponseWriter.Write(b[n:min(n+writeAtOnce, len(b))])
		a.bytes += int64(m)
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"haul/internal/limits"
)

// Limits bound the work and memory of requests. Zero fields mean the defaults.
type Limits struct {
	Body        int64         // bytes of a JSON body
	File        int64         // bytes of a file with an instance
	Upload      int64         // bytes of traces
	Unpacked    int64         // bytes that traces may unpack to
	Customers   int           // of an instance
	PolicySize  int           // customers of an instance that a policy routes
	Search      time.Duration // of one search
	Count       int           // instances of an evaluation
	Streams     int           // event streams
	Connections int
	Header      time.Duration // to send a request's header
	Stall       time.Duration // without a byte of a body, or with an answer that nobody takes
	JSONTime    time.Duration // for a whole JSON body, and for the rest of one that is too large
	UploadTime  time.Duration // for a whole upload
	Grace       time.Duration // of requests under way when the server is asked to stop
	Rate        float64       // requests per second of one address, twice as many at once; 0: any
	Jobs        int           // that are kept, ended ones among them
	ClientJobs  int           // of one address that have not ended
	JobTime     time.Duration // of a search that is a job
	JobKeep     time.Duration // of a job that has ended
	JobBytes    int64         // of requests and results of jobs
	Input       *limits.Set   // of what files and problems hold
}

func (l Limits) orDefault() Limits {
	bytes := func(v *int64, d int64) { *v = or(*v, d) }
	bytes(&l.Body, 8<<20)
	bytes(&l.File, 32<<20)
	bytes(&l.Upload, 512<<20)
	bytes(&l.Unpacked, 1<<30)
	l.Customers, l.PolicySize, l.Count = or(l.Customers, 5000), or(l.PolicySize, 500), or(l.Count, 1000)
	l.Streams, l.Connections = or(l.Streams, 2000), or(l.Connections, 4096)
	l.Search, l.Header, l.Stall = or(l.Search, time.Minute), or(l.Header, 5*time.Second), or(l.Stall, 15*time.Second)
	l.JSONTime, l.UploadTime, l.Grace = or(l.JSONTime, 30*time.Second), or(l.UploadTime, 10*time.Minute), or(l.Grace, 5*time.Second)
	l.Jobs, l.ClientJobs = or(l.Jobs, 1000), or(l.ClientJobs, 100)
	l.JobTime, l.JobKeep = or(l.JobTime, time.Hour), or(l.JobKeep, 7*24*time.Hour)
	bytes(&l.JobBytes, 256<<20)
	if l.Input == nil {
		l.Input = limits.ForService()
	}
	return l
}

// forJobs are the limits of a solve that is a job.
func (l Limits) forJobs() Limits {
	l.Search = l.JobTime
	return l
}

func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// silence takes what net/http logs about clients that misbehave: they were answered, and a log that
// they can fill helps nobody.
func silence() *log.Logger { return log.New(io.Discard, "", 0) }

// gate lets so many in at once and keeps a short queue before it.
type gate struct {
	what    string
	slots   chan struct{}
	waiting atomic.Int64
	most    int64
	wait    time.Duration
}

func newGate(what string, slots, queue int, wait time.Duration) *gate {
	return &gate{what: what, slots: make(chan struct{}, slots), most: int64(queue), wait: wait}
}

// enter waits for a place. The caller leaves once its work has really ended, not when its client
// has gone.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-g.slots }
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	default:
	}
	if g.waiting.Add(1) > g.most {
		g.waiting.Add(-1)
		return nil, busy(g.what)
	}
	defer g.waiting.Add(-1)
	patience := time.NewTimer(g.wait)
	defer patience.Stop()
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	case <-patience.C:
		return nil, busy(g.what)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func busy(what string) error {
	return &problem{Status: http.StatusServiceUnavailable, Detail: "too many " + what + " at once: try again in a moment", retry: 2}
}

// What one address may have under way at once.
const (
	clientRequests = 256
	clientLong     = 8
)

// patient is a body that must keep coming: a byte within the stall, and all of it within the total.
type patient struct {
	io.ReadCloser
	rc    *http.ResponseController
	stall time.Duration
	end   time.Time
	late  bool // it was too slow. net/http ends the request's context then, which hides why
}

func (p *patient) Read(b []byte) (int, error) {
	// A connection without deadlines is a test's.
	_ = p.rc.SetReadDeadline(earlier(time.Now().Add(p.stall), p.end))
	n, err := p.ReadCloser.Read(b)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		err, p.late = errSlow, true
	}
	if err == io.EOF {
		// the connection lives on, and so must the watch for a client that leaves
		_ = p.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

var errSlow = errors.New("the body came too slowly")

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// body limits a request's body in bytes and in time.
func (s *Server) body(w http.ResponseWriter, r *http.Request, most int64, total time.Duration) (io.ReadCloser, *patient, error) {
	if r.ContentLength > most {
		return nil, nil, tooLarge(most)
	}
	slow := &patient{ReadCloser: r.Body, rc: http.NewResponseController(w), stall: s.limits.Stall, end: time.Now().Add(total)}
	return http.MaxBytesReader(w, slow, most), slow, nil
}

func tooLarge(most int64) error {
	return &problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body is larger than %s", size(most))}
}

func size(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

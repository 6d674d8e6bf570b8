// Package serve is the server of haul serve: a page with three parts (runs, routes, doctor) and
// the HTTP API behind it.
//
// What a reader could break: the server only reads. No request writes to the folder of runs,
// except starting and stopping runs with --train (train.go), and no request names a path: runs
// are read through an os.Root, which no name and no link leaves. Every handler is reached
// through guard, which checks Host, Origin and token before anything else reads a request, and
// all work passes a gate, so that the work at one time is bounded.
package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"
)

// Options say what is served and to whom.
type Options struct {
	Runs    string   // the folder of runs; it need not exist yet
	Hosts   []string // names that requests may ask for, beside loopback's and literal addresses
	Token   string   // what requests must show; "" where only this machine can connect
	Keys    []string // of clients, beside the token: each sees and changes the jobs that it sent, and no others
	Shipped []Shipped
	Version string
	Poll    time.Duration  // between two looks at the runs; 0: half a second
	Limits  Limits         // zero fields are defaults
	Log     func(string)   // told what a person who started the server should see; may be nil
	Jobs    string         // the folder of jobs, so that they survive a restart; "": in memory
	Access  *slog.Logger   // told of every request; nil: none
	Proxies []netip.Prefix // of which X-Forwarded-For is believed
	Train   *Training      // what runs may be started with; nil: none are
}

// Shipped is a trained routing policy of the binary.
type Shipped struct {
	Name string
	Read func() ([]byte, error) // the checkpoint
}

// Server answers requests until it is closed.
type Server struct {
	o        Options
	limits   Limits
	metrics  *metrics
	runs     *watcher
	policies *policies
	quick    *gate // a policy's routes and the exact method: milliseconds
	long     *gate // searches and evaluations: seconds
	files    *gate // files with an instance, while they come in
	uploads  *gate // traces that are coming in
	doctor   *gate // traces
	clients  *clients
	jobs     *jobs
	trainer  trainer
	stopping atomic.Bool
	pages    *pages
	ledgers  *ledgers
	mux      *http.ServeMux
	handler  http.Handler
	base     context.Context // of all work
	end      context.CancelFunc
}

// New makes a server and begins to watch the runs.
func New(o Options) (*Server, error) {
	if o.Poll <= 0 {
		o.Poll = 500 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	s := &Server{o: o, limits: o.Limits.orDefault(), pages: newPages(), ledgers: newLedgers()}
	cores := runtime.GOMAXPROCS(0)
	s.quick = newGate("solves", cores, 512, 5*time.Second)
	s.long = newGate("searches", 2*cores, 16, 10*time.Second)
	s.files = newGate("files", 16, 64, 30*time.Second)
	s.uploads = newGate("uploads", 16, 16, 60*time.Second)
	s.doctor = newGate("traces", 1, 8, 60*time.Second)
	s.clients = newClients()
	s.metrics = newMetrics(s)
	s.base, s.end = context.WithCancel(context.Background())
	var err error
	if s.runs, err = watch(s.base, o.Runs, o.Poll, o.Log); err != nil {
		s.end()
		return nil, err
	}
	s.policies = newPolicies(o.Shipped, s.runs, cores)
	assets() // packed before the first request waits for them
	if s.jobs, err = newJobs(s, o.Jobs, max(1, cores-1)); err != nil {
		s.end()
		s.policies.close()
		return nil, err
	}
	s.mux = s.routes()
	s.handler = s.guard(s.mux)
	return s, nil
}

// Handler is the server without a listener.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers on a listener until ctx ends, and then stops: event streams end at once, requests
// under way are given a moment.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: s.limits.Header,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ErrorLog:          silence(),
	}
	ended := make(chan error, 1)
	go func() {
		ended <- srv.Serve(newCrowd(ln, s.limits.Connections, s.limits.Streams+clientRequests, s.isProxy, s.healthy))
	}()
	select {
	case err := <-ended:
		s.Close()
		return err
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	s.runs.hub.close()
	// Not ctx, which has ended.
	soon, cancel := context.WithTimeout(context.Background(), s.limits.Grace)
	defer cancel()
	err := srv.Shutdown(soon)
	s.Close()
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close() // searches were told to stop by Close; who still reads loses the connection
	}
	return err
}

// Close stops the watching, the event streams and all work under way.
func (s *Server) Close() {
	s.stopping.Store(true)
	s.end()
	s.runs.hub.close()
	s.trainer.close(trainGrace)
	s.jobs.close()
	s.policies.close()
}

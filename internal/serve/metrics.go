package serve

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// metrics are what Prometheus reads. Labels come from lists of this program's, never from a
// request: a client cannot make series.
type metrics struct {
	requests counters
	seconds  histograms
	inFlight atomic.Int64
	solves   histograms
	gauges   []gauge
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		requests: counters{name: "haul_http_requests_total", help: "Requests answered, by route and status.", labels: []string{"code", "route"}},
		seconds: histograms{name: "haul_http_request_seconds", help: "Time from a request's header to the end of its answer, by route.", label: "route",
			bounds: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}},
		solves: histograms{name: "haul_solve_seconds", help: "Time to solve an instance, without waiting for a place, by method.", label: "method",
			bounds: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30, 60}},
	}
	add := func(name, help string, read func() float64) {
		m.gauges = append(m.gauges, gauge{name, help, "gauge", read})
	}
	add("haul_http_requests_in_flight", "Requests under way, event streams included.", func() float64 { return float64(m.inFlight.Load()) })
	add("haul_event_streams", "Clients that listen for events.", func() float64 { return float64(s.runs.hub.count()) })
	for _, state := range []string{jobQueued, jobRunning} {
		add("haul_jobs_"+state, "Jobs that are "+state+".", func() float64 { return float64(s.jobs.count(state)) })
	}
	add("haul_runs", "Runs in the folder.", func() float64 { return float64(s.runs.count("")) })
	add("haul_runs_running", "Runs that a process trains at the moment.", func() float64 { return float64(s.runs.count(running)) })
	for _, place := range []struct {
		name string
		gate *gate
	}{{"haul_solves_waiting", s.quick}, {"haul_searches_waiting", s.long}, {"haul_traces_waiting", s.doctor}} {
		add(place.name, "Requests that wait for a place.", func() float64 { return float64(place.gate.waiting.Load()) })
	}
	return m
}

// request books a request under the route that answered it.
func (m *metrics) request(r *http.Request, status int, took time.Duration) {
	route := r.Pattern
	if _, path, ok := strings.Cut(route, " "); ok {
		route = path
	}
	if route == "" {
		route = "refused"
	}
	m.requests.inc(strconv.Itoa(status), route)
	if !strings.HasSuffix(route, "/events") {
		m.seconds.observe(route, took.Seconds())
	}
}

// ServeHTTP answers what Prometheus asks.
func (m *metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	m.requests.write(&b)
	m.seconds.write(&b)
	m.solves.write(&b)
	for _, g := range m.gauges {
		g.write(&b)
	}
	writeProcess(&b)
	w.Header().Set("Content-Type", exposition)
	_, _ = w.Write(b.Bytes())
}

// readyz says whether requests should be sent here: not once the server stops, and not where jobs
// could not be kept.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	words, status := "ready\n", http.StatusOK
	if s.stopping.Load() {
		words, status = "the server stops\n", http.StatusServiceUnavailable
	} else if err := s.jobs.store.ready(); err != nil {
		words, status = "the folder of jobs cannot be written: "+line(err.Error())+"\n", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(words))
}

// logged writes a request to the access log: who, what, how it went. A query is not written, since
// a token may stand in it.
func (s *Server) logged(r *http.Request, out *answered, took time.Duration) {
	if s.o.Access == nil {
		return
	}
	level := slog.LevelInfo
	if out.status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	s.o.Access.LogAttrs(context.Background(), level, "request", slog.String("client", s.address(r)), slog.String("method", line(r.Method)),
		slog.String("path", line(r.URL.Path)), slog.Int("status", out.status), slog.Int64("bytes", out.bytes),
		slog.Float64("ms", float64(took.Microseconds())/1e3), slog.String("agent", line(r.UserAgent())))
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

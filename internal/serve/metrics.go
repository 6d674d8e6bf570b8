package serve

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what Prometheus reads. Labels come from lists of this program's, never from a
// request: a client cannot make series.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	solves   *prometheus.HistogramVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "haul_http_requests_total", Help: "Requests answered, by route and status."}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "haul_http_request_seconds", Help: "Time from a request's header to the end of its answer, by route.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "haul_http_requests_in_flight", Help: "Requests under way, event streams included."}),
		solves: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "haul_solve_seconds", Help: "Time to solve an instance, without waiting for a place, by method.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30, 60}}, []string{"method"}),
	}
	gauge := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	m.registry.MustRegister(m.requests, m.seconds, m.inFlight, m.solves, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge("haul_event_streams", "Clients that listen for events.", func() float64 { return float64(s.runs.hub.count()) })
	for _, state := range []string{jobQueued, jobRunning} {
		gauge("haul_jobs_"+state, "Jobs that are "+state+".", func() float64 { return float64(s.jobs.count(state)) })
	}
	gauge("haul_runs", "Runs in the folder.", func() float64 { return float64(s.runs.count("")) })
	gauge("haul_runs_running", "Runs that a process trains at the moment.", func() float64 { return float64(s.runs.count(running)) })
	for name, g := range map[string]*gate{"haul_solves_waiting": s.quick, "haul_searches_waiting": s.long, "haul_traces_waiting": s.doctor} {
		gauge(name, "Requests that wait for a place.", func() float64 { return float64(g.waiting.Load()) })
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
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if !strings.HasSuffix(route, "/events") {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorLog: silence()})
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

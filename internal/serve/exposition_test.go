package serve

import (
	"bytes"
	"strings"
	"testing"
)

// Buckets hold what smaller ones hold, an observation at a bound lies within it, and labels are
// escaped as the format asks.
func TestMetricsAreWrittenAsPrometheusReadsThem(t *testing.T) {
	requests := counters{name: "n_total", help: "Requests.", labels: []string{"route", "code"}}
	seconds := histograms{name: "s", help: "Seconds.", label: "route", bounds: []float64{.5, 1}}
	var b bytes.Buffer
	requests.write(&b)
	seconds.write(&b)
	if b.Len() != 0 {
		t.Errorf("a family without values is written: %s", b.String())
	}
	requests.inc("/b", "200")
	requests.inc("/a\"\\\n", "404")
	requests.inc("/b", "200")
	for _, x := range []float64{.25, .5, .75, 1, 4} {
		seconds.observe("/b", x)
	}
	requests.write(&b)
	seconds.write(&b)
	gauge{"g", "A gauge.", "gauge", func() float64 { return 1e21 }}.write(&b)
	const want = `# HELP n_total Requests.
# TYPE n_total counter
n_total{route="/a\"\\\n",code="404"} 1
n_total{route="/b",code="200"} 2
# HELP s Seconds.
# TYPE s histogram
s_bucket{route="/b",le="0.5"} 2
s_bucket{route="/b",le="1"} 4
s_bucket{route="/b",le="+Inf"} 5
s_sum{route="/b"} 6.5
s_count{route="/b"} 5
# HELP g A gauge.
# TYPE g gauge
g 1e+21
`
	if b.String() != want {
		t.Errorf("written:\n%s\nwant:\n%s", b.String(), want)
	}
	b.Reset()
	writeProcess(&b)
	for _, name := range []string{"go_goroutines ", "go_info{version=\"go", "process_start_time_seconds "} {
		if !strings.Contains(b.String(), "\n"+name) {
			t.Errorf("no %s in\n%s", name, b.String())
		}
	}
}

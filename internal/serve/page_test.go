package serve

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The page stays small: all of it, packed, is a fraction of what a room may take.
func TestPageIsSmall(t *testing.T) {
	total := 0
	for name, a := range assets() {
		total += len(a.packed)
		if len(a.packed) > len(a.text)+32 {
			t.Errorf("%s grows from %d to %d bytes", name, len(a.text), len(a.packed))
		}
	}
	if total < 5000 || total > 100_000 {
		t.Errorf("the page has %d bytes, packed", total)
	}
}

var (
	markup = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|setAttribute\('style'`)
	inline = regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|\son[a-z]+=|\sstyle=|javascript:`)
	absent = regexp.MustCompile(`(?i)(?:src|href|from|import\()\s*=?\s*['"](https?:)?//`)
)

// Names reach the page as text: nothing in it makes markup of a string, runs inline, or is fetched
// from elsewhere.
func TestPageMakesNoMarkup(t *testing.T) {
	for name, a := range assets() {
		text := string(a.text)
		if m := markup.FindString(text); m != "" {
			t.Errorf("%s has %s", name, m)
		}
		if m := inline.FindString(text); strings.HasSuffix(name, ".html") && m != "" {
			t.Errorf("%s has %q, which its policy forbids", name, m)
		}
		if m := absent.FindString(text); m != "" {
			t.Errorf("%s fetches from elsewhere: %s", name, m)
		}
	}
	for _, bad := range []string{`el.innerHTML = name`, `eval(x)`, `el.setAttribute('style', x)`} {
		if !markup.MatchString(bad) {
			t.Errorf("%q is not found", bad)
		}
	}
	for _, bad := range []string{`<script>x()`, `<p onclick="x()">`, `<p style="x">`} {
		if !inline.MatchString(bad) {
			t.Errorf("%q is not found", bad)
		}
	}
}

func TestPageIsSent(t *testing.T) {
	x := open(t, nil)
	if a := x.do("GET", "/", ""); a.status != 302 || a.header.Get("Location") != "/runs" {
		t.Errorf("/: %d %v", a.status, a.header)
	}
	for _, path := range []string{"/runs", "/routes", "/doctor", "/main.js", "/style.css", "/icon.svg"} {
		plain := x.do("GET", path, "", "Accept-Encoding", "identity")
		packed := x.do("GET", path, "", "Accept-Encoding", "gzip")
		same := x.do("GET", path, "", "If-None-Match", plain.header.Get("ETag"))
		if plain.status != 200 || packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) >= len(plain.body)+32 || same.status != 304 {
			t.Errorf("%s: %d, %d, %d", path, plain.status, packed.status, same.status)
		}
		if csp := plain.header.Get("Content-Security-Policy"); csp != pageCSP {
			t.Errorf("%s: %s", path, csp)
		}
	}
	// The sheet stands in the page, whole, so that the first paint asks for nothing else, and the
	// policy lets that one sheet through.
	if body := x.do("GET", "/runs", "", "Accept-Encoding", "identity").body; strings.Contains(body, sheetLink) ||
		!strings.Contains(body, "<style>"+string(sheet())+"</style>") || strings.Contains(string(sheet()), "</") {
		t.Error("the page asks for its style sheet")
	}
	x.refused(x.do("GET", "/nowhere", ""), 404, "the rooms are")
	if a := x.do("GET", "/nowhere", "", "Accept", "text/html,*/*"); a.status != 404 || !strings.Contains(a.body, "There is no such page") || a.header.Get("Content-Security-Policy") != pageCSP {
		t.Errorf("a person is told %d %.100s", a.status, a.body)
	}
	trace, err := os.ReadFile("../../docs/examples/trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	if a := x.do("GET", "/example.json.gz", "", "Accept-Encoding", "identity"); a.body != string(trace) {
		t.Error("the example of the room Doctor is not docs/examples/trace.json.gz")
	}
	x.refused(x.do("POST", "/runs", ""), 405, "takes GET")
	x.refused(x.do("GET", "/api/v1/solve", ""), 405, "takes POST")
	x.refused(x.do("GET", "/api/v2/solve", ""), 404, "openapi.json")
	metrics := x.do("GET", "/metrics", "")
	for _, want := range []string{`haul_http_requests_total{code="404",route="/"}`, "haul_event_streams 0", "haul_runs 0", "go_goroutines"} {
		if !strings.Contains(metrics.body, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

// What drives a browser in tests is no part of the program.
func TestTheProgramHasNoBrowser(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", "haul/cmd/haul").Output()
	if err != nil {
		t.Skipf("go list cannot be run here: %v", err)
	}
	if strings.Contains(string(list), "chromedp") || !strings.Contains(string(list), "haul/internal/serve") {
		t.Error("chromedp is linked into the program, or the list is not the program's")
	}
}

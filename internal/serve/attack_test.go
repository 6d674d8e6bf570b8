package serve

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A name that was rebound to this machine's address is turned away, whatever it asks for.
func TestOtherHosts(t *testing.T) {
	x := open(t, nil)
	port := strings.TrimPrefix(x.url, "http://127.0.0.1")
	for _, host := range []string{"evil.example", "evil.example" + port, "127.0.0.1:1.evil.example", "127.0.0.1.evil.example", "10.0.0.1" + port, "localhost.evil.example", "[2001:db8::1]"} {
		for _, path := range []string{"/runs", "/api/v1/runs", "/metrics", "/healthz"} {
			x.refused(x.do("GET", path, "", "Host", host), 421, "does not answer for the host")
		}
	}
	for _, host := range []string{"localhost", "localhost:1234", "LOCALHOST.", "127.0.0.1" + port, "[::1]:80"} {
		if a := x.do("GET", "/api/v1/runs", "", "Host", host); a.status != 200 {
			t.Errorf("%s: %d", host, a.status)
		}
	}
	y := open(t, func(o *Options) { o.Hosts = []string{"Lab.example"} })
	if a := y.do("GET", "/api/v1/runs", "", "Host", "lab.example:8420"); a.status != 200 {
		t.Errorf("a name that was given: %d", a.status)
	}
}

func TestOtherOrigins(t *testing.T) {
	x := open(t, nil)
	body := fmt.Sprintf(square, "exact")
	for _, origin := range []string{"https://evil.example", "null", "http://localhost:1", "http://127.0.0.1", "file://"} {
		x.refused(x.do("POST", "/api/v1/solve", body, "Origin", origin), 403, "other origins")
		x.refused(x.do("POST", "/api/v1/doctor", body, "Origin", origin, "Content-Type", "text/plain"), 403, "other origins")
	}
	x.refused(x.do("POST", "/api/v1/solve", body, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), 403, "other sites")
	x.refused(x.do("GET", "/api/v1/runs", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), 403, "other sites")
	if a := x.do("POST", "/api/v1/solve", body, "Origin", x.url, "Sec-Fetch-Site", "same-origin"); a.status != 200 {
		t.Errorf("its own origin: %d %s", a.status, a.body)
	}
	if a := x.do("GET", "/runs", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"); a.status != 200 {
		t.Errorf("a link from elsewhere: %d", a.status)
	}
	if a := x.do("GET", "/runs", ""); strings.Contains(a.header.Get("Content-Security-Policy"), "unsafe") || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", a.header)
	}
}

func TestToken(t *testing.T) {
	const secret = "0123456789abcdef0123"
	x := open(t, func(o *Options) { o.Token = secret })
	for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}, {"Cookie", "haul_token=wrong"}, {"Authorization", "Bearer "}, {"Authorization", ""}, {"Authorization", "wrong"}} {
		x.refused(x.do("GET", "/api/v1/runs", "", headers...), 401, "token")
		x.refused(x.do("GET", "/metrics", "", headers...), 401, "token")
		x.refused(x.do("GET", "/runs", "", headers...), 401, "token")
	}
	x.refused(x.do("GET", "/api/v1/runs?token="+secret, ""), 401, "token") // it would stand in logs
	if a := x.do("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("healthz: %d", a.status)
	}
	if a := x.do("GET", "/api/v1/runs", "", "Authorization", secret, "Host", "192.0.2.1:8420"); a.status != 200 {
		t.Errorf("the token without a word before it: %d", a.status)
	}
	if a := x.do("GET", "/api/v1/runs", "", "Authorization", "Bearer "+secret, "Host", "192.0.2.1:8420"); a.status != 200 {
		t.Errorf("with the token: %d", a.status)
	}
	a := x.do("GET", "//evil.example/runs?token="+secret+"&run=a", "")
	cookie := a.header.Get("Set-Cookie")
	if to := a.header.Get("Location"); a.status != 303 || strings.Contains(to, secret) || strings.HasPrefix(to, "//") || !strings.Contains(to, "run=a") ||
		!strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("%d to %q with %q", a.status, to, cookie)
	}
	if a := x.do("GET", "/runs", "", "Cookie", strings.Split(cookie, ";")[0]); a.status != 200 {
		t.Errorf("with the cookie: %d", a.status)
	}
}

// No name of a run or a picture is a path, and no link leads out of the folder.
func TestNamesAreNotPaths(t *testing.T) {
	outside := t.TempDir()
	runs := filepath.Join(outside, "runs")
	dir := makeRun(t, runs, "a-001", 1)
	makeRun(t, outside, "secret", 3)
	write(t, filepath.Join(outside, "secret", "secret.png"), "TOP SECRET")
	write(t, filepath.Join(outside, "secret.csv"), "epoch,secret\n1,2\n")
	for from, to := range map[string]string{
		filepath.Join(runs, "linked"):                    filepath.Join(outside, "secret"),
		filepath.Join(runs, "relative"):                  "../secret",
		filepath.Join(dir, "linked.png"):                 filepath.Join(outside, "secret", "secret.png"),
		filepath.Join(dir, "csv", "linked.csv"):          filepath.Join(outside, "secret.csv"),
		filepath.Join(dir, "result.json"):                filepath.Join(outside, "secret", "config.yaml"),
		filepath.Join(dir, "best.safetensors"):           filepath.Join(outside, "secret", "config.yaml"),
		filepath.Join(runs, "neighbour"):                 "a-001",
		filepath.Join(runs, "a-001", "csv", "loop.csv"):  "loop.csv",
		filepath.Join(runs, "a-001", "csv", "fifo?.csv"): "/dev/zero",
	} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex // guards said: the watcher speaks while the test listens
	var said []string
	x := open(t, func(o *Options) {
		o.Runs, o.Log = runs, func(s string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, s)
		}
	})
	for _, name := range []string{"..%2fsecret", "%2e%2e%2fsecret", "..", "../secret", "a-001%2f..%2f..%2fsecret", "linked", "relative", "%2fetc", "a-001%00", "", "."} {
		if a := x.do("GET", "/api/v1/runs/"+name, ""); a.status == 200 && strings.Contains(a.body, "history") {
			t.Errorf("%s: %.200s", name, a.body)
		}
		for _, file := range []string{"secret.png", "..%2fsecret%2fsecret.png", "../../secret/secret.png"} {
			if a := x.do("GET", "/api/v1/runs/"+name+"/pictures/"+file, ""); strings.Contains(a.body, "SECRET") {
				t.Errorf("%s %s was sent", name, file)
			}
		}
	}
	for _, file := range []string{"linked.png", "..%2f..%2fsecret%2fsecret.png", "config.yaml", "%2fetc%2fpasswd", "csv%2fhistory_gt_rl.csv"} {
		x.refused(x.do("GET", "/api/v1/runs/a-001/pictures/"+file, ""), 404, "no picture")
	}
	for _, path := range []string{"/page.go", "/../serve.go", "/%2e%2e/serve.go", "/page/index.html", "/.git/config"} {
		if a := x.do("GET", path, ""); a.status == 200 {
			t.Errorf("%s was sent", path)
		}
	}
	var got Run
	x.do("GET", "/api/v1/runs/a-001", "").json(t, &got)
	if len(got.Tables) != 1 || len(got.Pictures) != 0 || string(got.Result) != "null" {
		t.Errorf("%+v", got)
	}
	if x.Server.runs.get("linked") != nil || x.Server.runs.get("relative") != nil || x.Server.runs.get("neighbour") == nil {
		t.Errorf("runs: %v", x.Server.runs.all())
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) != 2 || !strings.Contains(said[0], "link out of") {
		t.Errorf("said %q", said)
	}
}

// Markup in names arrives as text: in JSON that no browser takes for a page, and escaped in the
// doctor's page.
func TestMarkupInNames(t *testing.T) {
	x := open(t, nil)
	const evil = `<img src=x onerror=alert(1)>`
	makeRun(t, x.runs, evil, 1)
	soon(t, "the run", func() bool { return x.Server.runs.get(evil) != nil })
	for _, a := range []*answerOf{x.do("GET", "/api/v1/runs", ""), x.do("GET", "/api/v1/runs/%3Cimg%20src=x%20onerror=alert(1)%3E", ""), x.do("GET", "/api/v1/runs/%3Cscript%3E", "")} {
		kind := a.header.Get("Content-Type")
		if strings.Contains(a.body, "<img") || strings.Contains(a.body, "<script") || !strings.Contains(kind, "json") || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %.200s", kind, a.body)
		}
	}
	trace := `{"traceEvents": [` +
		`{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":1000},` +
		`{"ph":"X","cat":"cpu_op","name":"</script>` + evil + `","pid":1,"tid":1,"ts":10,"dur":900,"args":{"External id":1}}]}`
	trace = strings.ReplaceAll(trace, "</script>", `<\/script>`)
	var got struct{ Page string }
	x.do("POST", "/api/v1/doctor?name=%3Cimg%20src=x%20onerror=alert(1)%3E.json", trace).json(t, &got)
	page := x.do("GET", got.Page, "")
	if page.status != 200 || strings.Contains(page.body, "<img") || strings.Count(page.body, "<script") != 2 {
		t.Errorf("%d, scripts %d", page.status, strings.Count(page.body, "<script"))
	}
}

// endless is a body that is sent as fast as it is taken.
type endless struct{ sent atomic.Int64 }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	e.sent.Add(int64(len(b)))
	return len(b), nil
}

func TestBodiesWithoutEnd(t *testing.T) {
	t.Parallel() // most of it is waiting
	x := open(t, func(o *Options) {
		o.Limits = Limits{Grace: time.Second, Body: 1 << 20, Upload: 2 << 20, Stall: 200 * time.Millisecond, JSONTime: 300 * time.Millisecond, UploadTime: 300 * time.Millisecond}
	})
	for _, path := range []string{"/api/v1/solve", "/api/v1/doctor"} {
		body := &endless{}
		began := time.Now()
		resp, err := (&http.Client{Timeout: patience}).Post(x.url+path, "application/json", io.MultiReader(strings.NewReader("{"), body))
		switch {
		case err == nil:
			resp.Body.Close()
			late := resp.StatusCode == 408 && time.Since(began) > 300*time.Millisecond // a busy machine sends nothing fast
			if resp.StatusCode != 413 && !late {
				t.Errorf("%s fast: %d after %v, %d bytes", path, resp.StatusCode, time.Since(began), body.sent.Load())
			}
		case body.sent.Load() >= 64<<20: // the server may close before the client has sent everything
			t.Errorf("%s fast: %v", path, err)
		}
		// A client of its own: one that finds the connection closed while it sends reads no answer.
		for name, pause := range map[string]time.Duration{"a byte at a time": 5 * time.Millisecond, "stalled": 2 * time.Second} {
			c := dial(t, x)
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", path)
			go func() {
				for {
					time.Sleep(pause)
					if _, err := io.WriteString(c, "1\r\n \r\n"); err != nil {
						return
					}
				}
			}()
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != 408 {
				t.Errorf("%s %s: %v, %v", path, name, resp, err)
			}
			c.Close()
		}
	}
	// A length that is stated is refused before a byte of it comes.
	c := dial(t, x)
	fmt.Fprintf(c, "POST /api/v1/doctor HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", int64(2)<<30)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 413 {
		t.Errorf("2 GB: %v, %v", resp, err)
	}
}

func dial(t *testing.T, x *site) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// A header that does not end, and a client that does not read, are let go.
func TestSlowClients(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := dial(t, open(t, func(o *Options) { o.Limits = Limits{Grace: time.Second, Header: 200 * time.Millisecond} }))
	fmt.Fprint(c, "GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nX-A: ")
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("a header without an end: %v", err)
	}
	x := open(t, func(o *Options) { o.Limits = Limits{Grace: time.Second, Stall: 200 * time.Millisecond} })
	deaf := dial(t, x)
	fmt.Fprint(deaf, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	soon(t, "the stream", func() bool { return x.Server.runs.hub.count() == 1 })
	soon(t, "that it is let go", func() bool {
		for range 200 {
			x.Server.runs.hub.send(bytes.Repeat([]byte("x"), 1<<16))
		}
		return x.Server.runs.hub.count() == 0
	})
}

// Ten thousand connections: those past the limit are turned away, those that are in are served, and
// all is well when they have gone.
func TestTenThousandConnections(t *testing.T) {
	const limit = 1000
	// nobody is let go for being silent while the others come, however long that takes
	x := open(t, func(o *Options) { o.Limits.Connections, o.Limits.Header = limit, time.Hour })
	held := dial(t, x)
	first := bufio.NewReader(held)
	ask := func() (*http.Response, error) {
		if err := held.SetDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		fmt.Fprint(held, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(first, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		return resp, err
	}
	if _, err := ask(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	total := 10_000
	if testing.Short() {
		total = 2 * limit
	}
	var all []net.Conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	for i := range total {
		if i%500 == 0 { // who is in is served all the while, and not idle for long
			if resp, err := ask(); err != nil || resp.StatusCode != 200 {
				t.Fatalf("who was in, after %d: %v, %v", i, resp, err)
			}
		}
		c, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
		if err != nil {
			t.Logf("this machine allows %d connections: %v", len(all), err)
			break
		}
		all = append(all, c)
	}
	if len(all) < limit+100 {
		t.Skipf("only %d connections can be opened here", len(all))
	}
	if resp, err := ask(); err != nil || resp.StatusCode != 200 {
		t.Errorf("who was in: %v, %v", resp, err)
	}
	last := all[len(all)-1]
	if err := last.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(last), nil); err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("who came last: %v, %v", resp, err)
	}
	for _, c := range all {
		c.Close()
	}
	all = nil
	soon(t, "room", func() bool {
		resp, err := http.Get(x.url + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == 200
	})
	soon(t, "the end of their goroutines", func() bool { return runtime.NumGoroutine() < before+20 })
}

// unpackedSize is how many bytes a gzip file holds.
func unpackedSize(t *testing.T, path string) int64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, z)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBombs(t *testing.T) {
	x := open(t, func(o *Options) { o.Limits.Unpacked = 1 << 20 })
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(append([]byte(`{"traceEvents": [`), bytes.Repeat([]byte(" "), 64<<20)...)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	x.refused(x.do("POST", "/api/v1/doctor?name=bomb.json.gz", b.String()), 413, "unpacks to more than 1 MB")
	x.refused(x.do("POST", "/api/v1/solve", b.String(), "Content-Type", "application/json", "Content-Encoding", "gzip"), 415, "the body is packed")
	several, boundary := form(t, "ranks/rank0.json.gz", "ranks/rank1.json.gz")
	y := open(t, func(o *Options) {
		o.Limits.Unpacked = unpackedSize(t, "../../docs/examples/ranks/rank0.json.gz") * 3 / 2
	})
	y.refused(y.do("POST", "/api/v1/doctor", several, "Content-Type", boundary), 413, "unpacks to more than")
	deep := strings.Repeat("[", 1_000_000)
	x.refused(x.do("POST", "/api/v1/solve", deep), 400, "it takes an object, not array")
	x.refused(x.do("POST", "/api/v1/solve", `{"coords": `+deep), 400, "coords takes numbers, not array")
	x.refused(x.do("POST", "/api/v1/solve", strings.Repeat(`{"a":`, 100_000)), 400, `unknown key "a"`)
	x.refused(x.do("POST", "/api/v1/solve", `{"method": `+deep), 400, "nests more than")
	x.refused(x.do("POST", "/api/v1/evaluate", `{"policy": `+deep), 400, "nests more than")
	if a := x.do("POST", "/api/v1/solve", `{"name": "[[[[[[[[[[[[[[[[[[[[[[[[\"[[", "coords": [[0,0],[1,1]], "demands": [0,1], "capacity": 1}`); a.status != 200 {
		t.Errorf("brackets in a name: %s", a.body)
	}
}

// What is asked for at once is bounded, and who asks too much is told when to come back.
func TestCrowdedGates(t *testing.T) {
	x := open(t, nil)
	body := strings.Replace(fmt.Sprintf(square, "search"), "0.05", "30", 1)
	for range clientLong {
		go func() {
			if resp, err := http.Post(x.url+"/api/v1/solve", "application/json", strings.NewReader(body)); err == nil {
				resp.Body.Close()
			}
		}()
	}
	soon(t, "eight searches", func() bool { return len(x.long.slots)+int(x.long.waiting.Load()) == clientLong })
	a := x.do("POST", "/api/v1/solve", body)
	x.refused(a, 429, "under way already")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	g := newGate("things", 1, 1, 20*time.Millisecond)
	leave, err := g.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.enter(t.Context()); asProblem(err).Status != 503 || asProblem(err).retry == 0 {
		t.Errorf("who has waited: %v", err)
	}
	leave()
	if leave, err = g.enter(t.Context()); err != nil {
		t.Error(err)
	}
	leave()
}

// TestABodyTooLargeIsAnswered: a client that reads nothing before it has sent everything still
// learns that its file is too large, with a length and without one; one that sends the rest too
// slowly, or without end, is let go.
func TestABodyTooLargeIsAnswered(t *testing.T) {
	t.Parallel() // most of it is waiting
	x := open(t, func(o *Options) { o.Limits = Limits{Body: 1 << 20, Upload: 2 << 20, JSONTime: time.Hour} })
	const total, piece = 64 << 20, 1 << 20 // far more than a connection's buffers hold
	text := bytes.Repeat([]byte(" "), piece)
	for _, path := range []string{"/api/v1/solve", "/api/v1/doctor"} {
		for _, length := range []bool{false, true} {
			c := dial(t, x)
			head := "Transfer-Encoding: chunked"
			if length {
				head = fmt.Sprintf("Content-Length: %d", total)
			}
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n", path, head)
			var err error
			for sent := 0; sent < total && err == nil; sent += piece {
				if sent == total/2 && path == "/api/v1/solve" {
					time.Sleep(3 * linger / 2) // a client may be busy
				}
				if length {
					_, err = c.Write(text)
				} else {
					_, err = fmt.Fprintf(c, "%x\r\n%s\r\n", piece, text)
				}
			}
			if err == nil && !length {
				_, err = io.WriteString(c, "0\r\n\r\n")
			}
			if err != nil {
				t.Fatalf("%s, length %v: the rest is not taken: %v", path, length, err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("%s, length %v: %v", path, length, err)
			}
			said, err := io.ReadAll(resp.Body)
			if resp.StatusCode != 413 || err != nil || !strings.Contains(string(said), "the body is larger than") || !resp.Close {
				t.Errorf("%s, length %v: %d %s, %v, to be closed: %v", path, length, resp.StatusCode, said, err, resp.Close)
			}
		}
	}
	short := open(t, func(o *Options) { o.Limits = Limits{Body: 1 << 20, JSONTime: time.Second} })
	for what, rest := range map[string]struct {
		x     *site
		text  []byte
		pause time.Duration
	}{"50 bytes per second": {x, text[:1], 20 * time.Millisecond}, "without end": {short, text, time.Millisecond}} {
		c := dial(t, rest.x)
		fmt.Fprintf(c, "POST /api/v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", int64(1)<<50)
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 413 {
			t.Fatalf("a rest %s: %v, %v", what, resp, err)
		}
		gone := make(chan error, 1)
		go func() { // until the server has closed the connection
			for {
				if _, err := c.Write(rest.text); err != nil {
					gone <- err
					return
				}
				time.Sleep(rest.pause)
			}
		}()
		select {
		case <-gone:
		case <-time.After(patience):
			t.Fatalf("a rest %s holds its connection", what)
		}
	}
}

// A packed body is not unpacked, and said to be so; what says that it is not packed is taken.
func TestPackedBodies(t *testing.T) {
	x := open(t, nil)
	body := fmt.Sprintf(square, "exact")
	for _, packed := range []string{"gzip", "br", "identity, gzip"} {
		x.refused(x.do("POST", "/api/v1/solve", body, "Content-Encoding", packed), 415, "the body is packed (Content-Encoding: "+packed+"): send it as it is")
	}
	for _, plain := range []string{"identity", "Identity"} {
		if a := x.do("POST", "/api/v1/solve", body, "Content-Encoding", plain); a.status != 200 {
			t.Errorf("%s: %d", plain, a.status)
		}
	}
}

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"haul/internal/vrp"
)

// What a reader could break: this test drives a real browser against the real program in processes
// of their own. It runs where HAUL_BROWSER=1 says that chromium is there, as .ci/run browser does,
// and is skipped in words elsewhere. HAUL_AXE names axe-core's script, HAUL_SHOTS a folder for
// pictures of what was seen.

// widths are those of a phone and of a desk.
var widths = []int{380, 1440}

// visit is a browser on a server.
type visit struct {
	t      *testing.T
	ctx    context.Context
	url    string
	dir    string
	width  int
	mu     sync.Mutex // guards faults
	faults []string   // of the console, and of the network
}

// apart starts the program as a process of its own, which ends with the test.
func apart(t *testing.T, dir string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(program(), args...)
	cmd.Dir = dir
	if args[0] == "serve" {
		cmd.Stderr = t.Output()
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// listening is what haul serve prints first.
type listening struct{ URL, Token string }

// startServer starts haul serve and returns where it listens.
func startServer(t *testing.T, dir string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd, out := apart(t, dir, append([]string{"serve", "--addr", "127.0.0.1:0", "--json"}, args...)...)
	var at listening
	if !out.Scan() || json.Unmarshal(out.Bytes(), &at) != nil {
		t.Fatalf("haul serve printed %q", out.Text())
	}
	go func() {
		for out.Scan() {
		}
	}()
	return cmd, strings.TrimSuffix(at.URL, "/")
}

// profile is a folder for the browser, whose children write there for a moment after it has ended.
func profile(t *testing.T) string {
	dir, err := os.MkdirTemp("", "haul-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	})
	return dir
}

// needsBrowser leaves a test out where nobody says that chromium is there.
func needsBrowser(t *testing.T) {
	t.Helper()
	if os.Getenv("HAUL_BROWSER") == "" {
		t.Skip("needs chromium: .ci/run browser installs it and sets HAUL_BROWSER=1")
	}
}

// patience is how long a test waits for what must happen, however busy the machine.
const patience = 5 * time.Minute

// browser starts chromium with a window of that size; it ends with the test.
func browser(t *testing.T, width, height int) context.Context {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.WindowSize(width, height),
		chromedp.UserDataDir(profile(t)), chromedp.WSURLReadTimeout(patience))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil { // it ends with the context that it was started in
		t.Fatal(err)
	}
	return ctx
}

func TestBrowser(t *testing.T) {
	needsBrowser(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, width := range widths {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			dir := t.TempDir()
			_, url := startServer(t, dir)
			ctx := browser(t, width, 1000)
			v := &visit{t: t, ctx: ctx, url: url, dir: dir, width: width}
			chromedp.ListenTarget(ctx, v.hear)
			v.do("start", chromedp.ActionFunc(func(ctx context.Context) error {
				_, err := cdppage.AddScriptToEvaluateOnNewDocument(spy).Do(ctx)
				return err
			}), emulation.SetDeviceMetricsOverride(int64(width), 1000, 1, width < 600))
			v.paint()
			v.runs()
			v.routes()
			v.doctor()
			v.evil()
			v.episodes()
			v.starts()
			v.mu.Lock()
			defer v.mu.Unlock()
			for _, f := range v.faults {
				t.Errorf("the browser complains: %s", f)
			}
		})
	}
}

// spy keeps what was asked of the solver and what it answered.
const spy = `window.solved = [];
const plain = window.fetch;
window.fetch = async (...args) => {
  const response = await plain(...args);
  if (String(args[0]).endsWith('/solve')) {
    const copy = response.clone();
    copy.text().then(text => window.solved.push({ request: args[1].body, answer: text })).catch(() => {});
  }
  return response;
};`

func (v *visit) hear(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		v.faults = append(v.faults, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			text, _ := json.Marshal(e.Args)
			v.faults = append(v.faults, "console: "+string(text))
		}
	case *log.EventEntryAdded:
		asked := strings.Contains(e.Entry.URL, "/api/v1/instances?") && strings.Contains(e.Entry.Text, "422") // for its capacity
		if e.Entry.Level == log.LevelError && !asked {
			v.faults = append(v.faults, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

func (v *visit) do(what string, actions ...chromedp.Action) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		v.shot("failed")
		v.t.Fatalf("%s: %v; the browser said %q", what, err, v.faults)
	}
}

// until waits for an expression of the page's to be true.
func (v *visit) until(what, expression string) {
	v.t.Helper()
	v.do(what, chromedp.Poll("(() => {"+expression+"})()", nil, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
}

func (v *visit) text(expression string) (out string) {
	v.t.Helper()
	v.do(expression, chromedp.Evaluate(expression, &out))
	return out
}

// shot keeps a picture of what is seen.
func (v *visit) shot(name string) {
	dir := os.Getenv("HAUL_SHOTS")
	if dir == "" {
		return
	}
	var png []byte
	if err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot(&png)); err != nil {
		v.t.Logf("no picture %s: %v", name, err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, v.width)), png, 0o644); err != nil {
		v.t.Error(err)
	}
}

// checked has axe-core look at the room, by day and by night.
func (v *visit) checked(room string) {
	v.t.Helper()
	for _, scheme := range []string{"dark", "light"} {
		v.do("scheme", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		v.check(room + ", " + scheme)
	}
}

func (v *visit) check(room string) {
	v.t.Helper()
	path := os.Getenv("HAUL_AXE")
	if path == "" {
		v.t.Log("HAUL_AXE is not set: accessibility is not checked")
		return
	}
	script, err := os.ReadFile(path)
	if err != nil {
		v.t.Fatal(err)
	}
	var found string
	v.do("axe "+room, chromedp.Evaluate(string(script)+"; 1", nil),
		chromedp.Evaluate(`axe.run(document, {iframes: false}).then(r => JSON.stringify(r.violations.filter(v => ['serious', 'critical'].includes(v.impact))
			.map(v => v.id + ' (' + v.impact + '): ' + v.help + ' at ' + v.nodes.slice(0, 4).map(n => n.target.join(' ') + ' ' + n.failureSummary).join('; '))))`,
			&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if found != "[]" {
		v.t.Errorf("axe-core on %s at %d pixels: %s", room, v.width, found)
	}
	var wide bool
	v.do("width", chromedp.Evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth", &wide))
	if wide {
		v.t.Errorf("%s is wider than the window of %d pixels", room, v.width)
	}
}

// paint is the first look, and how much was sent for it. That it comes before the scripts is
// TestBrowserPaintsFirst's; how soon it comes is in docs/serve.md.
func (v *visit) paint() {
	v.t.Helper()
	v.do("warm", chromedp.Navigate(v.url+"/healthz")) // the browser itself starts slowly
	for range 3 {
		var ms, bytes float64
		v.do("open", chromedp.Navigate(v.url+"/runs"))
		v.until("the empty state", `return !document.getElementById('runs-empty').hidden`)
		v.do("measure", chromedp.Evaluate(`performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1`, &ms),
			chromedp.Evaluate(`[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')].reduce((a, e) => a + e.encodedBodySize, 0)`, &bytes))
		if !(bytes > 0 && bytes <= 400e3) {
			v.t.Errorf("the page took %.0f bytes", bytes)
		}
		v.t.Logf("first paint after %.0f ms, %.0f bytes", ms, bytes)
	}
	if words := v.text(`document.getElementById('runs-empty').textContent`); !strings.Contains(words, "haul train") {
		v.t.Errorf("the empty state says %q", words)
	}
	v.shot("empty")
	v.checked("empty runs")
}

// runs watches a run that another process trains.
func (v *visit) runs() {
	v.t.Helper()
	v.do("mark", chromedp.Evaluate("window.mark = 1", nil))
	// it has more epochs than anybody looks at, and ends when it was seen
	train, _ := apart(v.t, v.dir, "train", "--json", "--config", "quick", "--device", "cpu", "--workers", "1", "--epochs", "1000000", "--set", "training.num_epochs=1000000", "--set", "training.num_batches_per_epoch=8",
		"--set", "training.validation_instances=100", "--set", "model.hidden_dim=32", "--set", "training.batch_size=32")
	epoch := `Number(/epoch (\d+)/.exec(document.querySelector('#runs-list small')?.textContent ?? '')?.[1] ?? 0)`
	v.until("the run's first epoch", `return `+epoch+` >= 1`)
	var first float64
	v.do("epoch", chromedp.Evaluate(epoch, &first))
	v.until("more epochs", fmt.Sprintf("return %s >= %g", epoch, first+3))
	v.until("its curve", `return document.querySelectorAll('#runs-charts path.line').length >= 3`)
	if got := v.text(`String(window.mark)`); got != "1" {
		v.t.Error("the page was loaded again")
	}
	if state := v.text(`document.querySelector('#runs-list .state').textContent`); state != "running" {
		v.t.Errorf("the run is %q", state)
	}
	v.notes(epoch)
	v.do("hold the button", chromedp.Evaluate(`held = document.querySelector('#runs-bars button'); held.focus()`, nil), chromedp.Evaluate(epoch, &first))
	v.until("an epoch beside the button", fmt.Sprintf("return %s > %g", epoch, first))
	if got := v.text(`String(document.activeElement === held)`); got != "true" {
		v.t.Error("an epoch took the button away")
	}
	v.do("ledger", chromedp.Click(`#runs-bars button`, chromedp.ByQuery))
	v.until("the step taken apart", `return document.querySelectorAll('#runs-bars .bar').length == 2`)
	if err := train.Process.Kill(); err != nil {
		v.t.Errorf("the run ended before it was seen: %v", err)
	}
	v.do("top", chromedp.Evaluate(`scrollTo(0, 0)`, nil))
	v.shot("runs")
	v.checked("runs")
}

// notes writes beside a run while epochs come in, and finds the words again after a new start.
func (v *visit) notes(epoch string) {
	v.t.Helper()
	var first float64
	v.do("write", chromedp.SendKeys(`#notes-list textarea`, "smaller <b>steps</b>", chromedp.ByQuery), chromedp.Evaluate(epoch, &first))
	v.until("an epoch beside the writing", fmt.Sprintf("return %s > %g", epoch, first))
	if got := v.text(`document.activeElement.tagName + ': ' + document.activeElement.value`); got != "TEXTAREA: smaller <b>steps</b>" {
		v.t.Errorf("an epoch later the writer is at %q", got)
	}
	v.do("again", chromedp.Navigate(v.url+"/runs"))
	v.until("the note", `return document.querySelector('#notes-list textarea')?.value == 'smaller <b>steps</b>'`)
	filter := func(words string, left int) {
		v.do("filter", chromedp.Evaluate(fmt.Sprintf(`(f => { f.value = %q; f.dispatchEvent(new Event('input')) })(document.getElementById('runs-filter'))`, words), nil))
		v.until(words, fmt.Sprintf(`return document.querySelectorAll('#runs-list li').length == %d`, left))
	}
	filter("larger", 0)
	filter("smaller", 1)
	filter("", 1)
	v.until("its curve again", `return document.querySelectorAll('#runs-charts path.line').length >= 3`)
}

// routes places ten customers, moves one, and has the routes validated.
func (v *visit) routes() {
	v.t.Helper()
	v.do("open", chromedp.Click(`nav a[data-room=routes]`, chromedp.ByQuery), chromedp.WaitVisible(`#r-maps svg`, chromedp.ByQuery))
	v.until("an example, solved", `return document.querySelectorAll('#r-maps svg .depot').length == 1 && document.querySelectorAll('.map .customer').length == 20 && document.querySelectorAll('.under .routes tbody tr').length > 0`)
	v.do("clear", chromedp.Click(`#r-clear`, chromedp.ByQuery))
	v.until("an empty map", `return document.querySelectorAll('.map .customer').length == 0`)
	v.do("scroll", chromedp.Evaluate(`document.querySelector('#r-maps svg').scrollIntoView({block: 'center'})`, nil))
	var box struct{ X, Y, W, H float64 }
	where := `(() => { const b = document.querySelector('#r-maps svg').getBoundingClientRect(); return {x: b.x, y: b.y, w: b.width, h: b.height} })()`
	v.do("where", chromedp.Evaluate(where, &box))
	for i := range 10 {
		v.do("place", chromedp.MouseClickXY(box.X+box.W*(0.12+0.08*float64(i)), box.Y+box.H*(0.2+0.6*float64(i*7%10)/10)))
		v.do("where", chromedp.Evaluate(where, &box))
	}
	v.until("routes of ten customers", `return solved.some(s => JSON.parse(s.request).coords.length == 11 && s.answer.includes('event: result'))`)
	v.checkRoutes(10)
	v.do("exact", chromedp.SetValue(`#r-methods select`, "exact", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector('#r-methods select').dispatchEvent(new Event('change'))`, nil))
	v.until("the optimum", `return document.querySelector('.map .figures').textContent.includes('gap 0 % to the optimum')`)
	before := v.text(`String(solved.length)`)
	v.do("drag", chromedp.Evaluate(`document.querySelector('#r-maps svg').scrollIntoView({block: 'center'})`, nil), chromedp.Evaluate(where, &box), chromedp.ActionFunc(func(ctx context.Context) error {
		x, y := box.X+box.W*0.12, box.Y+box.H*0.2
		for i, kind := range []input.MouseType{input.MousePressed, input.MouseMoved, input.MouseMoved, input.MouseReleased} {
			if err := input.DispatchMouseEvent(kind, x+8*float64(i), y+5*float64(i)).WithButton(input.Left).WithButtons(1).WithClickCount(1).Do(ctx); err != nil {
				return err
			}
		}
		return nil
	}))
	v.until("that it is solved again", `return solved.length > `+before)
	v.checkRoutes(10)
	v.do("keyboard", chromedp.Focus(`#r-maps svg`, chromedp.ByQuery), chromedp.KeyEvent("\r"))
	v.until("an eleventh customer", `return solved.some(s => JSON.parse(s.request).coords.length == 12 && s.answer.includes('event: result'))`)
	v.checkRoutes(11)
	v.openRoutes()
	v.globe()
	v.crowd()
	v.do("random, compared", chromedp.SetValue(`#r-methods select`, "search", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector('#r-methods select').dispatchEvent(new Event('change'))`, nil), chromedp.Click(`#r-random`, chromedp.ByQuery), chromedp.Click(`#r-compare`, chromedp.ByQuery))
	v.until("two maps", `return [...document.querySelectorAll('.map .figures')].filter(f => f.textContent.includes('cost')).length >= 1 && document.querySelectorAll('.map').length == 2`)
	v.until("both at their end", `return [...document.querySelectorAll('.map')].every(m => / ms/.test(m.querySelector('.figures').textContent) || !m.querySelector('.notice').hidden)`)
	v.shot("routes")
	v.checked("routes")
}

// openRoutes asks for routes that end at their last customer: the exact method says that it knows
// none, the search finds them, and the map draws no way back.
func (v *visit) openRoutes() {
	v.t.Helper()
	v.do("open routes", chromedp.Click(`#r-open`, chromedp.ByQuery))
	v.until("that the exact method refuses", `return document.querySelector('.map .notice').textContent.includes('Open routes')`)
	v.do("search", chromedp.SetValue(`#r-methods select`, "search", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector('#r-methods select').dispatchEvent(new Event('change'))`, nil))
	v.until("open routes", `return solved.some(s => JSON.parse(s.request).open && s.answer.includes('event: result'))`)
	v.checkRoutes(11)
	back := `(() => { const d = document.querySelector('.depot'), at = [13 + +d.getAttribute('x'), 13 + +d.getAttribute('y')].map(x => x.toFixed(1)).join(' ');
		return String([...document.querySelectorAll('.map .route')].map(r => r.getAttribute('d')).filter(d => d.endsWith('L' + at)).length) })()`
	v.until("that they are drawn without a way back", `return document.querySelectorAll('.map .route').length > 0 && `+back+` == '0'`)
	if got := v.text(`new URLSearchParams(location.search).get('open')`); got != "1" {
		v.t.Errorf("the address says open=%s", got)
	}
	if got := v.text(`String([...document.querySelectorAll('.map button')].filter(b => !b.hidden && b.textContent == '.vrp').length)`); got != "0" {
		v.t.Error("open routes are offered as .vrp, which has no word for them")
	}
	closed := v.text(`String(solved.length)`)
	v.do("closed routes", chromedp.Click(`#r-open`, chromedp.ByQuery))
	v.until("closed routes", `return solved.length > `+closed+` && !JSON.parse(solved.at(-1).request).open && solved.at(-1).answer.includes('event: result')`)
	v.until("that they are drawn with their way back", `return document.querySelectorAll('.map .route').length > 0 && `+back+` == String(document.querySelectorAll('.map .route').length)`)
}

// globe drops a table of places on both sides of the date line, far in the north: the map shows
// them as near as they are, both directions at one scale, and a customer that is placed among them
// lies there too.
func (v *visit) globe() {
	v.t.Helper()
	table := filepath.Join(v.t.TempDir(), "globe.csv")
	if err := os.WriteFile(table, []byte("id,lat,lon,demand\nd,59.995,179.98,\na,60.005,-179.98,1\n"), 0o644); err != nil {
		v.t.Fatal(err)
	}
	v.drop(`.map`, table)
	v.until("that the capacity is asked for", `return !document.getElementById('r-ask').hidden`)
	v.do("tell it", chromedp.SetValue(`#r-ask-value`, "30", chromedp.ByQuery), chromedp.Evaluate(`document.getElementById('r-ask').requestSubmit()`, nil))
	v.until("one route of one customer", `const told = [...document.querySelectorAll('.map .figures span')].map(s => s.textContent); return told.includes('1 route') && told.includes('1 customer') && told.some(s => /^cost [0-9,.]+ m$/.test(s))`)
	at := `(() => { const d = document.querySelector('.map .depot'), c = document.querySelector('.map .customer');
		return [13 + +d.getAttribute('x'), 13 + +d.getAttribute('y'), +c.getAttribute('cx'), +c.getAttribute('cy')].map(x => x.toFixed(0)).join(' ') })()`
	if got := v.text(at); got != "50 725 950 275" { // 0.02 degrees of latitude in x, 0.01 in y
		v.t.Errorf("depot and customer lie at %s", got)
	}
	v.do("keyboard", chromedp.Focus(`#r-maps svg`, chromedp.ByQuery), chromedp.KeyEvent("\r"))
	v.until("a customer in the middle", `return solved.some(s => { const c = JSON.parse(s.request).coords[2]; return c && Math.abs(Math.abs(c[0]) - 180) < 1e-3 && Math.abs(c[1] - 60) < 1e-3 && s.answer.includes('event: result') })`)
}

// crowd draws 2,000 customers, which must not hide the routes between them.
func (v *visit) crowd() {
	v.t.Helper()
	count := v.text(`document.getElementById('r-count').value`)
	v.do("many", chromedp.SetValue(`#r-count`, "2000", chromedp.ByQuery), chromedp.Click(`#r-random`, chromedp.ByQuery))
	v.until("2,000 customers", `return document.querySelectorAll('.map .customer').length == 2000`)
	if got := v.text(`document.querySelector('.map .customer').getAttribute('r') < 3 ? 'small' : 'large'`); got != "small" {
		v.t.Error("2,000 customers hide their routes")
	}
	v.do("few", chromedp.SetValue(`#r-count`, count, chromedp.ByQuery))
}

// checkRoutes asks the validator about what the page was answered last.
func (v *visit) checkRoutes(customers int) {
	v.t.Helper()
	text := v.text(fmt.Sprintf(`JSON.stringify(solved.filter(s => JSON.parse(s.request).coords.length == %d && s.answer.includes('event: result')).at(-1))`, customers+1))
	var last struct{ Request, Answer string }
	var ask struct {
		Coords   [][2]float64
		Demands  []int32
		Capacity int32
		Open     bool
	}
	var got struct {
		Cost   float64
		Routes [][]int32
	}
	if err := json.Unmarshal([]byte(text), &last); err != nil {
		v.t.Fatal(err)
	}
	_, result, _ := strings.Cut(last.Answer, "event: result\ndata: ")
	if err := json.Unmarshal([]byte(last.Request), &ask); err != nil {
		v.t.Fatal(err)
	}
	if err := json.NewDecoder(strings.NewReader(result)).Decode(&got); err != nil {
		v.t.Fatal(err, last.Answer)
	}
	p := &vrp.Problem{Capacity: ask.Capacity, Demand: ask.Demands, Open: ask.Open}
	for _, c := range ask.Coords {
		p.X, p.Y = append(p.X, c[0]), append(p.Y, c[1])
	}
	if err := vrp.Validate(p, vrp.Solution{Routes: got.Routes}); err != nil || p.N() != customers {
		v.t.Errorf("%d customers, want %d: %v", p.N(), customers, err)
	}
	if cost := p.Cost(vrp.Solution{Routes: got.Routes}); math.Abs(cost-got.Cost) > 1e-9*cost {
		v.t.Errorf("the page was told %v of routes that cost %v", got.Cost, cost)
	}
}

// doctor drops a trace and reads its first finding.
func (v *visit) doctor() {
	v.t.Helper()
	trace, err := filepath.Abs(filepath.Join(repository, "docs/examples/trace.json.gz"))
	if err != nil {
		v.t.Fatal(err)
	}
	want := object(v.t, "doctor", trace, "--json")["findings"].([]any)[0].(map[string]any)["id"].(string)
	v.do("open", chromedp.Click(`nav a[data-room=doctor]`, chromedp.ByQuery), chromedp.WaitVisible(`#d-drop`, chromedp.ByQuery))
	v.checked("empty doctor")
	v.drop(`#d-drop`, trace)
	v.until("the first finding", `return (document.getElementById('d-frame').contentDocument?.querySelector('.finding h3')?.textContent ?? '').includes('`+want+`')`)
	v.until("the timeline", `const c = document.getElementById('d-frame').contentDocument.getElementById('timeline'); return c.width > 100 && c.height > 50`)
	v.shot("doctor")
	v.checked("doctor")
}

// drop lets a file fall onto an element.
func (v *visit) drop(selector, path string) {
	v.t.Helper()
	v.do("drop", chromedp.ScrollIntoView(selector, chromedp.ByQuery), chromedp.QueryAfter(selector, func(ctx context.Context, _ runtime.ExecutionContextID, _ ...*cdp.Node) error {
		var at struct{ X, Y float64 }
		if err := chromedp.Evaluate(`(() => { const b = document.querySelector('`+selector+`').getBoundingClientRect(); return {x: b.x + 30, y: b.y + 10} })()`, &at).Do(ctx); err != nil {
			return err
		}
		data := &input.DragData{Items: []*input.DragDataItem{}, Files: []string{path}, DragOperationsMask: 1}
		for _, kind := range []input.DispatchDragEventType{input.DragEnter, input.DragOver, input.Drop} {
			if err := input.DispatchDragEvent(kind, at.X, at.Y, data).Do(ctx); err != nil {
				return err
			}
		}
		return nil
	}, chromedp.ByQuery))
}

// evil is markup in the names of a run, an operator and a file: it must be read, not run.
func (v *visit) evil() {
	v.t.Helper()
	const markup = `<img src=x onerror=top.pwned=1>`
	if err := os.MkdirAll(filepath.Join(v.dir, "runs", markup, "csv"), 0o755); err != nil {
		v.t.Fatal(err)
	}
	for name, text := range map[string]string{"config.yaml": "problem:\n    num_customers: \"" + markup + "\"\n", "csv/history_gt_rl.csv": "epoch,val_gap," + markup + "\n1,0.5,0.25\n"} {
		if err := os.WriteFile(filepath.Join(v.dir, "runs", markup, name), []byte(text), 0o644); err != nil {
			v.t.Fatal(err)
		}
	}
	trace := filepath.Join(v.dir, strings.ReplaceAll(markup, "/", "")+".json")
	event := `{"ph":"X","cat":"%s","name":"%s","pid":1,"tid":1,"ts":%d,"dur":%d}`
	text := fmt.Sprintf(`{"traceEvents":[`+event+`,`+event+`]}`, "user_annotation", "ProfilerStep#1", 0, 1000, "cpu_op", `<\/script>`+markup, 10, 900)
	if err := os.WriteFile(trace, []byte(text), 0o644); err != nil {
		v.t.Fatal(err)
	}
	v.drop(`#d-drop`, trace)
	v.until("the operator's name", `return (document.getElementById('d-frame').contentDocument?.body?.textContent ?? '').includes('onerror')`)
	v.do("open", chromedp.Navigate(v.url+"/runs?run="+strings.ReplaceAll(strings.ReplaceAll(markup, " ", "%20"), "=", "%3D")))
	v.until("the run's name", `return document.querySelector('#runs-cards h2')?.textContent.includes('onerror')`)
	if got := v.text(`String(window.pwned)`); got != "undefined" {
		v.t.Errorf("markup in a name was run: %s", got)
	}
	if got := v.text(`String(document.querySelectorAll('img[src="x"]').length)`); got != "0" {
		v.t.Errorf("markup in a name became an element")
	}
}

// episodes plays what an agent's run has saved of its walks.
func (v *visit) episodes() {
	v.t.Helper()
	dir := filepath.Join(v.dir, "runs", "agent-001")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		v.t.Fatal(err)
	}
	const walk = `{"goal": [2, 1], "cells": [[1, 1], [2, 1], [2, 1]], "return": 2}`
	for name, text := range map[string]string{"config.yaml": "train_timesteps: 10\n",
		"result.json": `{"evaluation": {"size": 3, "episodes": 4, "share_of_optimum": 0.5, "first_episode": ` + walk + `, "last_episode": ` + walk + `}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			v.t.Fatal(err)
		}
	}
	v.do("open", chromedp.Navigate(v.url+"/runs?run=agent-001"))
	v.until("the rooms", `return document.querySelectorAll('.room-map').length == 2`)
	v.until("that they play", `return document.querySelector('.room-map .walker').getAttribute('cx') == '90'`)
	v.checked("episodes")
}

// starts starts a run from the page of a server that may, follows it and stops it.
func (v *visit) starts() {
	v.t.Helper()
	_, url := startServer(v.t, v.t.TempDir(), "--train")
	v.do("another server", chromedp.Navigate(url), chromedp.WaitVisible(`#runs-start`, chromedp.ByQuery))
	if first := v.text(`document.querySelector('#start-config').value`); first != "quick" {
		v.t.Errorf("the form offers %q first", first)
	}
	v.do("choose", chromedp.SetValue(`#start-device`, "cpu", chromedp.ByQuery), chromedp.SetValue(`#start-time`, "1440", chromedp.ByQuery))
	v.checked("start")
	v.do("train", chromedp.Click(`#start-go`, chromedp.ByQuery))
	v.until("the run", `return /quick-001/.test(document.querySelector('#runs-list b')?.textContent ?? '')`)
	v.until("its way out", `return !document.querySelector('#start-stop').hidden && document.querySelector('#start-go').disabled`)
	v.until("its first epoch", `return /epoch [1-9]/.test(document.querySelector('#runs-list small')?.textContent ?? '')`)
	v.shot("start")
	v.do("stop", chromedp.Click(`#start-stop`, chromedp.ByQuery))
	v.until("its end", `return document.querySelector('#runs-list .state').textContent === 'stopped'`)
	v.until("room for another", `return document.querySelector('#start-stop').hidden && !document.querySelector('#start-go').disabled`)
}

// A name of any length wraps, a run that is not there is told, and so is an address that asks for
// no instance, where it can be seen: on a phone the map comes first.
func TestBrowserTellsWhatIsWrong(t *testing.T) {
	needsBrowser(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	long := strings.Repeat("x", 200)
	if err := os.MkdirAll(filepath.Join(dir, "runs", long, "csv"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.yaml": "problem:\n    num_customers: 5\n", "csv/history_gt_rl.csv": "epoch,val_gap\n1,0.5\n"} {
		if err := os.WriteFile(filepath.Join(dir, "runs", long, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, url := startServer(t, dir)
	for _, width := range widths {
		ctx := browser(t, width, 800)
		v := &visit{t: t, ctx: ctx, url: url, dir: dir, width: width}
		v.do("size", emulation.SetDeviceMetricsOverride(int64(width), 800, 1, width < 600))
		v.do("open", chromedp.Navigate(url+"/runs?run="+long))
		v.until("the long name among the notes", `return document.querySelector('#notes-list label') !== null`)
		var wide bool
		v.do("width", chromedp.Evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth", &wide))
		if wide {
			t.Errorf("a long name makes the room wider than %d pixels", width)
		}
		v.do("open", chromedp.Navigate(url+"/runs?run=nope"))
		v.until("that the run is not there", `const e = document.getElementById('runs-error'); return !e.hidden && e.textContent.includes('no run nope in')`)
		v.do("open", chromedp.Navigate(url+"/routes?n=0"))
		v.until("why there is no instance, in view", `const e = document.getElementById('r-error'), at = e.getBoundingClientRect();
			return e.textContent.includes('customers is 0') && at.top >= 0 && at.bottom <= innerHeight + 1`)
	}
}

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// What a reader could break: answers come in any order on a busy machine. These tests hold one back
// until something newer has come, and let it in then.

// wall is a script of the page's. After hold(end) an answer from an address with that end is
// received whole, counted in `held`, and kept until letIn is called. `paints` counts how often the
// list of runs was painted.
const wall = `window.held = 0;
window.hold = end => { window.behind = end; window.gate = new Promise(go => window.letIn = () => { window.behind = null; go(); }); };
const plain = window.fetch;
window.fetch = async (...args) => {
  const response = await plain(...args);
  if (!window.behind || !String(args[0]).endsWith(window.behind)) return response;
  await response.clone().arrayBuffer();
  window.held++;
  await window.gate;
  return response;
};
window.paints = 0;
addEventListener('DOMContentLoaded', () => {
  const list = document.getElementById('runs-list');
  if (list) new MutationObserver(() => window.paints++).observe(list, { childList: true });
});`

// newVisit opens a browser on a server of an empty folder, with a script in every page.
func newVisit(t *testing.T, script string) *visit {
	t.Helper()
	needsBrowser(t)
	dir := t.TempDir()
	_, url := startServer(t, dir)
	v := &visit{t: t, ctx: browser(t, 1440, 1000), url: url, dir: dir, width: 1440}
	v.do("script", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdppage.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
	return v
}

// epochs writes a run of so many epochs, or adds those that it lacks.
func (v *visit) epochs(name string, n int) {
	v.t.Helper()
	table := filepath.Join(v.dir, "runs", name, "csv", "history_gt_rl.csv")
	if err := os.MkdirAll(filepath.Dir(table), 0o755); err != nil {
		v.t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("epoch,val_gap\n")
	for i := range n {
		fmt.Fprintf(&text, "%d,0.5\n", i+1)
	}
	was, _ := os.ReadFile(table) // none of a new run
	f, err := os.OpenFile(table, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		v.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text.String()[len(was):]); err != nil {
		v.t.Fatal(err)
	}
	if was != nil {
		return
	}
	if err := os.WriteFile(filepath.Join(v.dir, "runs", name, "config.yaml"), []byte("problem:\n    num_customers: 5\n"), 0o644); err != nil {
		v.t.Fatal(err)
	}
}

// An answer about runs that was asked for before an event and comes after it takes nothing back of
// what the event told: neither from the list nor from a run's rows.
func TestBrowserLateRuns(t *testing.T) {
	v := newVisit(t, wall)
	v.epochs("a-001", 1)
	listed := `const told = [...document.querySelectorAll('#runs-list label')].map(l => l.querySelector('b').textContent + ' ' + l.querySelector('small').textContent); return %s`
	v.do("open", chromedp.Navigate(v.url+"/runs?run=a-001"))
	v.until("the run", fmt.Sprintf(listed, `told.length == 1 && told[0].includes('epoch 1')`)+` && document.querySelector('#runs-cards dd')?.textContent == '1'`)
	late := func(end, news string) (list, card string) {
		v.do("ask for what comes late", chromedp.Evaluate(`before = held; hold('`+end+`')`, nil), chromedp.Click(`nav a[data-room=runs]`, chromedp.ByQuery))
		v.until("an answer behind the wall", `return held > before`)
		n := 2
		if end != "/runs" {
			n = 3
			v.epochs("c-001", 1)
		}
		v.epochs("b-001", 1)
		v.epochs("a-001", n)
		v.until("the events", fmt.Sprintf(listed, news))
		v.do("let it in", chromedp.Evaluate(`before = paints; letIn()`, nil))
		v.until("that it is painted", `return paints > before`)
		return v.text(`[...document.querySelectorAll('#runs-list b')].map(b => b.textContent).sort().join(' ')`), v.text(`document.querySelector('#runs-cards dd').textContent`)
	}
	if list, card := late("/runs", `told.length == 2 && told.some(t => t.includes('a-001') && t.includes('epoch 2'))`); list != "a-001 b-001" || card != "2" {
		t.Errorf("after a late list there are %s, a-001 is at epoch %s", list, card)
	}
	if list, card := late("/runs/a-001", `told.length == 3 && told.some(t => t.includes('a-001') && t.includes('epoch 3'))`); list != "a-001 b-001 c-001" || card != "3" {
		t.Errorf("after a late run there are %s, a-001 is at epoch %s", list, card)
	}
}

// The doctor's example does not take the place of a trace that was dropped after it was asked for.
func TestBrowserLateExample(t *testing.T) {
	v := newVisit(t, wall)
	trace, err := filepath.Abs(filepath.Join(repository, "docs/examples/trace.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	chips := `[...document.querySelectorAll('#d-files .chip')].map(c => c.textContent).join(' ')`
	v.do("open", chromedp.Navigate(v.url+"/doctor"), chromedp.WaitVisible(`#d-drop`, chromedp.ByQuery), chromedp.WaitReady(`a[data-room=doctor][aria-current]`, chromedp.ByQuery),
		chromedp.Evaluate(`import('/doctor.js').then(() => {})`, nil, awaited), chromedp.Evaluate(`hold('/example.json.gz')`, nil), chromedp.Click(`#d-example`, chromedp.ByQuery))
	v.until("the example behind the wall", `return held == 1`)
	v.drop(`#d-drop`, trace)
	v.until("the trace", `return `+chips+` == 'trace.json.gz'`)
	// who asks for the same once more has it after the page
	v.do("let it in", chromedp.Evaluate(`letIn(); fetch('/example.json.gz').then(got => got.blob()).then(() => {})`, nil, awaited))
	if got := v.text(chips); got != "trace.json.gz" {
		t.Errorf("the example has come late, and the doctor reads %s", got)
	}
	v.do("the example again", chromedp.Click(`#d-example`, chromedp.ByQuery))
	v.until("the example", `return `+chips+` == 'example.json.gz'`)
}

func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// held are requests of the browser's that wait for the test.
type held struct {
	v    *visit
	mu   sync.Mutex // guards ids
	ids  []fetch.RequestID
	stop context.CancelFunc
}

// hold keeps requests for these files back.
func (v *visit) hold(files ...string) *held {
	v.t.Helper()
	ctx, stop := context.WithCancel(v.ctx)
	h := &held{v: v, stop: stop}
	chromedp.ListenTarget(ctx, func(event any) {
		if e, ok := event.(*fetch.EventRequestPaused); ok {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ids = append(h.ids, e.RequestID)
		}
	})
	var patterns []*fetch.RequestPattern
	for _, f := range files {
		patterns = append(patterns, &fetch.RequestPattern{URLPattern: "*/" + f})
	}
	v.do("hold", fetch.Enable().WithPatterns(patterns))
	return h
}

// wait waits until so many requests are held.
func (h *held) wait(n int) {
	h.v.t.Helper()
	eventually(h.v.t, "requests that are held", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.ids) >= n
	})
}

func (h *held) release() {
	h.v.t.Helper()
	h.stop()
	h.mu.Lock()
	ids := slices.Clone(h.ids)
	h.mu.Unlock()
	for _, id := range ids {
		h.v.do("go on", fetch.ContinueRequest(id))
	}
	h.v.do("hold no more", fetch.Disable())
}

// A room whose files come after its visitor has gone on to another one is not entered.
func TestBrowserLateRoom(t *testing.T) {
	v := newVisit(t, spy)
	v.do("open", chromedp.Navigate(v.url+"/runs"))
	v.until("the room", `return !document.getElementById('runs-empty').hidden`)
	h := v.hold("routes.js")
	v.do("routes", chromedp.Click(`nav a[data-room=routes]`, chromedp.ByQuery))
	h.wait(1)
	v.do("doctor", chromedp.Click(`nav a[data-room=doctor]`, chromedp.ByQuery), chromedp.WaitVisible(`#d-drop`, chromedp.ByQuery))
	h.release()
	v.do("the room's files", chromedp.Evaluate(`import('/routes.js').then(() => {})`, nil, awaited))
	if got := v.text(`String(document.querySelectorAll('.map').length)`); got != "0" {
		t.Errorf("%s maps in a room that nobody is in", got)
	}
	v.do("routes again", chromedp.Click(`nav a[data-room=routes]`, chromedp.ByQuery))
	v.until("an example, solved", `return document.querySelectorAll('.under .routes tbody tr').length > 0`)
}

// The page paints before its scripts have come.
func TestBrowserPaintsFirst(t *testing.T) {
	v := newVisit(t, spy)
	v.do("warm", chromedp.Navigate(v.url+"/healthz"))
	h := v.hold("main.js", "runs.js", "util.js", "chart.js", "walk.js")
	v.do("go", chromedp.ActionFunc(func(ctx context.Context) error {
		_, _, _, _, err := cdppage.Navigate(v.url + "/runs").Do(ctx)
		return err
	}))
	h.wait(1)
	eventually(t, "the first paint", func() bool {
		ctx, cancel := context.WithTimeout(v.ctx, time.Minute)
		defer cancel()
		var painted bool
		err := chromedp.Run(ctx, chromedp.Evaluate(`location.pathname == '/runs' && performance.getEntriesByName('first-contentful-paint').length > 0`, &painted))
		return err == nil && painted // before the page is there its predecessor answers, or nobody
	})
	h.release()
	v.until("the empty state", `return !document.getElementById('runs-empty').hidden`)
}

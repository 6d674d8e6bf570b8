package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// late holds the example's answer back until letIn is called. It says that the page asked for it
// (window.asked) and that the page has had it (window.came).
const late = `const letter = new Promise(go => window.letIn = go);
const plain = window.fetch;
window.fetch = async (...args) => {
  const response = await plain(...args);
  if (!String(args[0]).includes('/instances/random')) return response;
  window.asked = true;
  const read = response.json.bind(response);
  response.json = async () => { const value = await read(); await letter; setTimeout(() => window.came = true); return value; };
  return response;
};`

// A spreadsheet of 200 customers is dropped on the map: the page asks how fast vehicles are, solves
// it, and shows routes by the sheet's own ids, with times of day and a time bar. The example of an
// opened page comes after the file here, and must not take its place.
func TestBrowserSheet(t *testing.T) {
	needsBrowser(t)
	sheet, err := filepath.Abs("../../../docs/examples/deliveries.xlsx")
	if err != nil {
		t.Fatal(err)
	}
	_, url := startServer(t, t.TempDir())
	for _, width := range widths {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			v := &visit{t: t, ctx: browser(t, width, 1400), url: url, width: width}
			v.do("hold the example back", chromedp.ActionFunc(func(ctx context.Context) error {
				_, err := cdppage.AddScriptToEvaluateOnNewDocument(late).Do(ctx)
				return err
			}))
			v.do("open", emulation.SetDeviceMetricsOverride(int64(width), 1400, 1, width < 600), chromedp.Navigate(url+"/routes"), chromedp.WaitVisible(`.map`, chromedp.ByQuery))
			v.until("that the page asked for an example", `return window.asked`)
			v.drop(`.map`, sheet)
			v.until("that the speed is asked for", `return !document.getElementById('r-ask').hidden`)
			v.do("let the example come", chromedp.Evaluate(`letIn()`, nil))
			v.until("that it came", `return window.came`)
			if got := v.text(`String(document.getElementById('r-ask').hidden)`); got != "false" {
				t.Fatal("an example that came late has taken the place of the file")
			}
			v.do("tell it", chromedp.SetValue(`#r-ask-value`, "35", chromedp.ByQuery), chromedp.Evaluate(`document.getElementById('r-ask').requestSubmit()`, nil))
			v.until("200 customers on routes", `return [...document.querySelectorAll('.map .figures span')].some(s => s.textContent === '200 customers') && document.querySelectorAll('table.routes tbody tr').length >= 10`)
			v.until("ids and times of day", `const order = document.querySelector('table.routes .order')?.textContent ?? ''; return /C\d+/.test(order) && /\d\d:\d\d/.test(order)`)
			v.until("time bars", `return document.querySelectorAll('svg.bars rect').length > 100`)
			for _, scheme := range []string{"dark", "light"} {
				v.do("scheme", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.Evaluate(`scrollTo(0, 0)`, nil))
				v.check("sheet, " + scheme)
				v.shot("sheet-" + scheme)
			}
		})
	}
}

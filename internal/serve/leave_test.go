package serve

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"haul/internal/limits/limitstest"
)

// heaviest are problems with as much as the limits allow of what costs most to schedule and to
// evaluate, with routes to begin with, which are validated: windows, types, breaks with reloads.
func heaviest() map[string]string {
	const customers = 40
	var all, types, skips []string
	for v := range customers {
		all = append(all, fmt.Sprint(v+1))
	}
	for i := range 500 {
		types = append(types, fmt.Sprintf(`{"count":1,"capacity":[%d],"fixed_cost":%d,"shift":[0,99999]}`, i+customers, i))
	}
	for i := range 8 {
		skips = append(skips, fmt.Sprintf(`{"windows":[[%d,99999]],"duration":1,"max_load":[%d]}`, i, customers))
	}
	start := `,"start":[[` + strings.Join(all, ",") + `]]`
	own := func(more string) string {
		return strings.Replace(document(customers, more), `"capacity":1048576,`, "", 1)
	}
	return map[string]string{
		"windows": document(customers, windowsOf(customers, 100)),
		"types":   own(`,"fleet":[` + strings.Join(types, ",") + `]` + start),
		"breaks":  own(`,"fleet":[{"count":3,"capacity":[40],"reloads":[0],"shift":[0,999999],"breaks":[` + strings.Join(skips, ",") + `]}]` + start),
	}
}

// TestWorkEndsWithWhoAskedForIt: a search of an hour over each of the heaviest problems ends when
// its client has gone, when its job is cancelled, and when the server is asked to stop.
func TestWorkEndsWithWhoAskedForIt(t *testing.T) {
	for name, body := range heaviest() {
		body := strings.TrimSuffix(body, "}") + `,"time":3000}`
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := open(t, func(o *Options) { o.Limits.Search = time.Hour })
			working := func() int { return len(x.quick.slots) + len(x.long.slots) }
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				r, err := http.NewRequestWithContext(ctx, "POST", x.url+"/api/v1/solve", strings.NewReader(body))
				if err == nil {
					var resp *http.Response
					if resp, err = http.DefaultClient.Do(r); err == nil {
						text, _ := io.ReadAll(resp.Body)
						resp.Body.Close()
						err = fmt.Errorf("%d %.200s", resp.StatusCode, text)
					}
				}
				gone <- err
			}()
			soon(t, "a search", func() bool { return len(x.long.slots) == 1 })
			leave()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("it was answered: %v", err)
			}
			soon(t, "the client's work to end", func() bool { return working() == 0 })

			id := x.submit(body, 202).ID
			x.until(id, jobRunning)
			if a := x.do("POST", "/api/v1/jobs/"+id+"/cancel", ""); a.status >= 300 {
				t.Errorf("%d %s", a.status, a.body)
			}
			x.until(id, jobCancelled)

			id = x.submit(body, 202).ID
			x.until(id, jobRunning)
			x.stop()
			err := <-x.gone
			x.gone <- err // for the cleanup
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// ending is a body whose client leaves when it has been sent.
type ending struct {
	io.Reader
	leave func()
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	if err == io.EOF {
		e.leave()
	}
	return n, err
}

// TestReadingEndsWithItsClient: a spreadsheet whose client has gone is not read to its end: little
// is allocated of what its cells take.
func TestReadingEndsWithItsClient(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{
		"xl/workbook.xml":            `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="s" r:id="r1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="r1" Target="s.xml"/></Relationships>`,
		"xl/s.xml": `<worksheet><sheetData><row><c t="str"><v>id</v></c><c t="str"><v>x</v></c></row>` +
			strings.Repeat(`<row>`+strings.Repeat(`<c><v>1</v></c>`, 2)+`</row>`, 99_000) + `</sheetData></worksheet>`,
	} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	x := open(t, nil)
	read := func(ctx context.Context, leave func()) error {
		r := httptest.NewRequestWithContext(ctx, "POST", "/api/v1/instances?name=f.xlsx", &ending{bytes.NewReader(b.Bytes()), leave})
		_, err := x.readInstance(httptest.NewRecorder(), r)
		return err
	}
	limitstest.Reading(t, 0, func() {
		ctx, leave := context.WithCancel(t.Context())
		if err := read(ctx, leave); !errors.Is(err, context.Canceled) {
			t.Errorf("its client has gone: %v", err)
		}
	})
	if err := read(t.Context(), func() {}); err == nil || errors.Is(err, context.Canceled) || len(x.quick.slots) != 0 {
		t.Errorf("its client waits: %v", err)
	}
}

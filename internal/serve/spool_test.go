package serve

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Clients that take their time over an upload hold no place of the doctor's: another one is
// answered meanwhile. And nothing of any upload is left when it has ended.
func TestSlowUploadsHoldNoPlace(t *testing.T) {
	aside := t.TempDir()
	t.Setenv("TMPDIR", aside)
	x := open(t, func(o *Options) { o.Limits.Stall = 2 * patience })
	trace, err := os.ReadFile("../../docs/examples/trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat(" ", 3*spoolMemory)
	for _, sent := range []string{"{", large} {
		slow := dial(t, x)
		fmt.Fprintf(slow, "POST /api/v1/doctor HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(large)+100, sent)
	}
	soon(t, "both uploads under way", func() bool { return len(x.Server.uploads.slots) == 2 })
	quick := &http.Client{Timeout: patience}
	resp, err := quick.Post(x.url+"/api/v1/doctor?name=trace.json.gz", "application/gzip", strings.NewReader(string(trace)))
	if err != nil {
		t.Fatalf("a quick client behind slow ones: %v", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a quick client behind slow ones: %d", resp.StatusCode)
	}
	if n := len(x.Server.uploads.slots); n != 2 {
		t.Errorf("%d uploads are under way: it was answered when they had ended", n)
	}
	x.refused(x.do("POST", "/api/v1/doctor", large+"nonsense"), 422, "not a trace") // through a file
	cut := dial(t, x)
	fmt.Fprintf(cut, "POST /api/v1/doctor HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(large)+100, large)
	cut.Close()
	soon(t, "the one that left", func() bool { return len(x.Server.uploads.slots) == 2 })
	if left, err := os.ReadDir(aside); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("TMPDIR", aside+"/nosuch")
	x.refused(x.do("POST", "/api/v1/doctor", large), http.StatusInsufficientStorage, "cannot be put aside")
	late := dial(t, x) // still sends long after the server knows
	fmt.Fprintf(late, "POST /api/v1/doctor HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(large), large[:2*spoolMemory])
	time.Sleep(700 * time.Millisecond)
	for sent := 2 * spoolMemory; sent < len(large); sent += 1 << 10 {
		if _, err := late.Write([]byte(large[sent : sent+1<<10])); err != nil {
			t.Fatalf("cut off while it sends: %v", err)
		}
	}
	if answer, err := bufio.NewReader(late).ReadString('\n'); err != nil || !strings.Contains(answer, "507") {
		t.Errorf("who sends slowly reads %q, %v", answer, err)
	}
	// small ones need no disk
	if a := x.do("POST", "/api/v1/doctor?name=trace.json.gz", string(trace)); a.status != http.StatusOK {
		t.Errorf("%d %.200s", a.status, a.body)
	}
}

package serve

import (
	"strings"
	"testing"
)

// The name that a server listens on is one that its own address may be opened by.
func TestServeAnswersForItsAddress(t *testing.T) {
	for addr, want := range map[string]string{"lab.example": "a,lab.example", "127.0.0.1": "a", "::1": "a", "": "a", "0.0.0.0": "a", "localhost": "a"} {
		if got := strings.Join(servedHosts([]string{"a"}, addr), ","); got != want {
			t.Errorf("%q: %s, want %s", addr, got, want)
		}
	}
}

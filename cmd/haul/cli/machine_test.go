package cli

import (
	"strings"
	"testing"
)

func TestModelNames(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"processor\t: 0\nmodel name\t: A Processor @ 2 GHz\n", "A Processor @ 2 GHz"},
		{"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n", "Neoverse V1"},
		{"CPU implementer\t: 0x61\nCPU part\t: 0x032\n", "arm64 processor, implementer 0x61, part 0x032"},
		{"", unnamed},
	} {
		if got := modelIn(strings.NewReader(c.text)); got != c.want {
			t.Errorf("%q is named %q, want %q", c.text, got, c.want)
		}
	}
}

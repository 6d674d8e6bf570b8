package cuda

import (
	"testing"

	"haul/internal/cu"
)

func TestOldCardsAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		card cu.Device
		want string
	}{
		{cu.Device{Name: "Tesla T4", Major: 7, Minor: 5}, "Tesla T4 is too old: compute capability 7.5, 8.0 or newer is needed"},
		{cu.Device{Name: "NVIDIA A100", Major: 8}, ""},
		{cu.Device{Name: "NVIDIA H200", Major: 9}, ""},
	} {
		got := ""
		if err := serves(c.card); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.card.Name, got, c.want)
		}
	}
}

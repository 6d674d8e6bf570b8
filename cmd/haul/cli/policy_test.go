package cli

import (
	"testing"

	"haul/internal/config"
	"haul/internal/policy"
)

// TestSlowDecodersAreTold: what is chosen where nobody says how is not slow up to 2,000 customers,
// and what takes longer is.
func TestSlowDecodersAreTold(t *testing.T) {
	var f PolicyFlags
	for _, n := range []int{1, 20, policy.MostForPomo8, policy.MostForPomo8 + 1, policy.MostForPomo, policy.MostForPomo + 1, 2000} {
		if d, _, err := f.Decoder(&config.Config{}, n, false); err != nil || Slow(d, n) {
			t.Errorf("%d customers by %s: slow, %v", n, d, err)
		}
	}
	for name, n := range map[string]int{"pomo8": policy.MostForPomo8 + 1, "pomo8:1": policy.MostForPomo, "pomo": policy.MostForPomo + 1, "sgbs8": 100, "eas8": 50, "sample:65536": 100, "greedy": 5000} {
		if d, err := policy.ParseDecode(name); err != nil || !Slow(d, n) {
			t.Errorf("%d customers by %s: not slow, %v", n, name, err)
		}
	}
}

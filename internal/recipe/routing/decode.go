package routing

import (
	"fmt"
	"strconv"
	"strings"

	"haul/internal/config"
)

// Decode is how routes are made from a policy; of all routes of an instance the shortest counts.
type Decode struct {
	Samples    int  // routes drawn at random; 0: the most likely node at every step
	Starts     bool // a route from every customer as the first
	Symmetries int  // 8: every instance under the symmetries of the square; else 1
}

// DecodeUsage tells a user of the decoders.
const DecodeUsage = "greedy, sample:K, pomo (a route from every customer), pomo8 (and under 8 symmetries)"

// Greedy is one route an instance, the most likely node at every step.
var Greedy = Decode{Symmetries: 1}

// maxSamples keeps a slip of the hand from asking for all memory.
const maxSamples = 1 << 16

// ParseDecode reads greedy, sample:K, pomo (N starts) or pomo8 (N starts, 8 symmetries).
func ParseDecode(s string) (Decode, error) {
	switch s {
	case "greedy":
		return Greedy, nil
	case "pomo":
		return Decode{Starts: true, Symmetries: 1}, nil
	case "pomo8":
		return Decode{Starts: true, Symmetries: 8}, nil
	}
	if k, ok := strings.CutPrefix(s, "sample:"); ok {
		n, err := strconv.Atoi(k)
		if err != nil || n < 1 || n > maxSamples {
			return Decode{}, fmt.Errorf("decode %s: the number of samples must be 1 to %d", s, maxSamples)
		}
		return Decode{Samples: n, Symmetries: 1}, nil
	}
	return Decode{}, fmt.Errorf("unknown decode %q: use greedy, sample:K, pomo or pomo8", s)
}

// validationDecode is how a run's validation and its test route; the settings hold it to what ParseDecode knows.
func validationDecode(c *config.Config) Decode {
	d, err := ParseDecode(c.Training.ValidationDecode)
	if err != nil {
		panic("routing: training.validation_decode: " + err.Error())
	}
	return d
}

// String is what ParseDecode reads.
func (d Decode) String() string {
	switch {
	case d.Samples > 0:
		return fmt.Sprintf("sample:%d", d.Samples)
	case d.Starts && d.Symmetries == 8:
		return "pomo8"
	case d.Starts:
		return "pomo"
	}
	return "greedy"
}

// starts is the number of routes a row of the batch is given, for instances of n customers.
func (d Decode) starts(n int) int {
	switch {
	case d.Samples > 0:
		return d.Samples
	case d.Starts:
		return n
	}
	return 1
}

// Routes is the number of routes an instance of n customers is given.
func (d Decode) Routes(n int) int { return d.starts(n) * d.symmetries() }

func (d Decode) symmetries() int { return max(1, d.Symmetries) }

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
	Beam       int  // with Starts: hypotheses that a simulation-guided beam search keeps; 0: no search
	Expand     int  // nodes that each is continued by
}

// DecodeUsage tells a user of the decoders.
const DecodeUsage = "greedy, sample:K, pomo (a route from every customer), pomo8 (and under 8 symmetries), sgbs or sgbs8 (beam search from there)"

// Greedy is one route an instance, the most likely node at every step.
var Greedy = Decode{Symmetries: 1}

// maxSamples keeps a slip of the hand from asking for all memory.
const maxSamples = 1 << 16

// What a beam search keeps and tries where nothing is said, and at most.
const (
	beamWidth = 4
	maxBeam   = 64
)

// ParseDecode reads greedy, sample:K, pomo (N starts), pomo8 (N starts, 8 symmetries), sgbs or sgbs8, of which sgbs:B,G says how many
// hypotheses are kept and how many nodes each is continued by.
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
	name, sizes, sized := strings.Cut(s, ":")
	if name == "sgbs" || name == "sgbs8" {
		d := Decode{Starts: true, Symmetries: 1, Beam: beamWidth, Expand: beamWidth}
		if name == "sgbs8" {
			d.Symmetries = 8
		}
		if sized {
			b, g, _ := strings.Cut(sizes, ",")
			var errB, errG error
			d.Beam, errB = strconv.Atoi(b)
			d.Expand, errG = strconv.Atoi(g)
			if errB != nil || errG != nil || d.Beam < 1 || d.Expand < 2 || d.Beam > maxBeam || d.Expand > maxBeam {
				return Decode{}, fmt.Errorf("decode %s: write %s:B,G with a beam of 1 to %d and 2 to %d nodes each", s, name, maxBeam, maxBeam)
			}
		}
		return d, nil
	}
	return Decode{}, fmt.Errorf("unknown decode %q: use greedy, sample:K, pomo, pomo8, sgbs or sgbs8", s)
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
	case d.Beam > 0 && d.Symmetries == 8:
		return fmt.Sprintf("sgbs8:%d,%d", d.Beam, d.Expand)
	case d.Beam > 0:
		return fmt.Sprintf("sgbs:%d,%d", d.Beam, d.Expand)
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

// Routes is the number of routes an instance of n customers is given; a beam search begins with them.
func (d Decode) Routes(n int) int { return d.starts(n) * d.symmetries() }

func (d Decode) symmetries() int { return max(1, d.Symmetries) }

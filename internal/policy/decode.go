package policy

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"haul/internal/config"
)

// Decode configures how routes are made by a policy. Of all solutions of an instance the shortest
// is the result.
type Decode struct {
	Samples int // number of sampled routes; 0: the most likely node is chosen at every step
	// A route from every customer. It begins at the customer (a forced start). If Drawn, a policy
	// with views instead chooses its first action as if the vehicle were at that customer.
	Starts      bool
	Drawn       bool    // with Starts: the policy's choices are sampled
	Temperature float64 // of sampling; 0: inference.default_temperature
	Symmetries  int     // 8: every instance is solved in the 8 symmetries of the square; else 1
	// with Starts: width of a simulation-guided beam search; 0: no search
	Beam   int
	Expand int // children of each hypothesis of the beam
	// With Starts and Drawn: an active search improves the routes for Iterations iterations. If
	// Iterations is 0, for activeIterations, or as long as the time limit allows.
	Active     bool
	Iterations int
	Join       bool // recombine routes of different solutions (recombine.go)
}

// Draws reports whether routes depend on a seed.
func (d Decode) Draws() bool { return d.Samples > 0 || d.Drawn }

// DecodeUsage describes the decoders in help texts.
const DecodeUsage = "how to make routes: greedy; sample:K (the best of K samples); pomo (one greedy solution from every first customer); pomo:T (the same, sampled at temperature T); " +
	"sgbs (beam search); eas:I (active search: I iterations that learn on the instance). An 8, as in pomo8, pomo8:T, sample8:K, sgbs8 and eas8:I, adds the 8 symmetries of the square. " +
	"+join, as in pomo8:1+join, combines routes of different solutions (not after greedy or sgbs)"

// Greedy makes one route per instance, with the most likely node at every step.
var Greedy = Decode{Symmetries: 1}

// The default decoder of one problem makes as many routes as take about a second on two cores. The
// time of all routes grows with the cube of the number of customers. These are the largest sizes
// for pomo8 and pomo.
const (
	MostForPomo8 = 200
	MostForPomo  = 2 * MostForPomo8 // an eighth of the routes, each twice as long
)

// DecodeFor returns the default decoder of a policy with these settings for one problem of n
// customers.
func DecodeFor(c *config.Config, n int) Decode {
	d := Thorough(c, n)
	switch {
	case n > MostForPomo:
		return Greedy
	case n > MostForPomo8:
		d.Symmetries = 1
	}
	return d
}

// Thorough is DecodeFor without a limit of time.
func Thorough(c *config.Config, n int) Decode { return Decode{Starts: true, Symmetries: 8}.suits(c, n) }

// samplingLimit times the number of customers in training is the largest size for which sampled
// routes are better than the most likely ones. For cvrp20 with pomo8 they are 0.40 % shorter at 25
// customers, 0.45 % at 35, 0.28 % at 40, and 0.2 % longer at 50.
const samplingLimit = 2

// suits returns d for problems of n customers as a policy with these settings was trained for it: a
// policy with viewed starts samples its routes.
func (d Decode) suits(c *config.Config, n int) Decode {
	if c.Model.StartViews && d.Starts && float64(n) <= samplingLimit*float64(c.Problem.NumCustomers()) {
		d.Drawn, d.Temperature = true, 1
	}
	return d
}

// DrawnFor returns the decoder that samples the routes of d's starts, if a policy with these
// settings was trained for it on problems of about n customers. It returns "" if not, or if d
// samples already.
func (d Decode) DrawnFor(c *config.Config, n int) string {
	drawn := d.suits(c, n)
	if d.Beam > 0 || d.Drawn || !drawn.Drawn {
		return ""
	}
	return drawn.String()
}

// maxSamples keeps a typing error from requesting all memory.
const maxSamples = 1 << 16

// The default width of a beam, and the largest.
const (
	beamWidth = 4
	maxBeam   = 64
)

// Iterations of an active search without a number or a time limit, and the largest number.
const (
	activeIterations = 200
	maxIterations    = 1_000_000
)

// joinSuffix in a decoder's name turns on recombination.
const joinSuffix = "+join"

// Bounds of a decoder's temperature, equal to those of inference.default_temperature.
const (
	minTemperature = 1e-3
	maxTemperature = 1e3
)

// ParseDecode parses the name of a decoder: greedy, sample:K, pomo (N starts), sgbs, and sample8:K,
// pomo8 and sgbs8 with the 8 symmetries. pomo:T samples routes at temperature T, and so does
// sample:K,T. sgbs:B,G sets the beam's width and the children of a hypothesis. eas:I and eas8:I are
// active searches of I iterations. +join may follow decoders that make several routes and keep
// them.
func ParseDecode(s string) (Decode, error) {
	if plain, join := strings.CutSuffix(s, joinSuffix); join {
		d, err := ParseDecode(plain)
		if err == nil && (d.Join || d.Beam > 0 || d.Routes(2) < 2) {
			err = fmt.Errorf("decode %s: %s goes behind pomo, sample:K with several routes and eas, once", s, joinSuffix)
		}
		d.Join = true
		return d, err
	}
	if i := strings.IndexByte(s, '+'); i > 0 && s[i-1] != 'e' { // the plus in 1e+2 belongs to a temperature
		return Decode{}, fmt.Errorf("decode %s: behind %s goes %s alone, not %s", s, s[:i], joinSuffix, s[i:])
	}
	name, rest, more := strings.Cut(s, ":")
	kind, eight := strings.CutSuffix(name, "8")
	d := Decode{Symmetries: 1}
	if eight {
		d.Symmetries = 8
	}
	switch {
	case s == "greedy":
		return Greedy, nil
	case kind == "pomo":
		d.Starts, d.Drawn = true, more
		if more && !readTemperature(rest, &d.Temperature) {
			return Decode{}, fmt.Errorf("decode %s: write %s, or %s:T with a temperature of %g to %g", s, name, name, minTemperature, maxTemperature)
		}
		return d, nil
	case kind == "sample":
		number, temperature, tempered := strings.Cut(rest, ",")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > maxSamples {
			return Decode{}, fmt.Errorf("decode %s: the number of samples must be 1 to %d, as in %s:100", s, maxSamples, name)
		}
		d.Samples = n
		if tempered && !readTemperature(temperature, &d.Temperature) {
			return Decode{}, fmt.Errorf("decode %s: write %s:%d, or %s:%d,T with a temperature of %g to %g", s, name, n, name, n, minTemperature, maxTemperature)
		}
		return d, nil
	case kind == "sgbs":
		d.Starts, d.Beam, d.Expand = true, beamWidth, beamWidth
		if more {
			b, g, _ := strings.Cut(rest, ",")
			var errB, errG error
			d.Beam, errB = strconv.Atoi(b)
			d.Expand, errG = strconv.Atoi(g)
			if errB != nil || errG != nil || d.Beam < 1 || d.Expand < 2 || d.Beam > maxBeam || d.Expand > maxBeam {
				return Decode{}, fmt.Errorf("decode %s: write %s:B,G with a beam of 1 to %d and 2 to %d nodes each", s, name, maxBeam, maxBeam)
			}
		}
		return d, nil
	case kind == "eas":
		d.Starts, d.Drawn, d.Temperature, d.Active = true, true, 1, true
		if more {
			var err error
			if d.Iterations, err = strconv.Atoi(rest); err != nil || d.Iterations < 1 || d.Iterations > maxIterations {
				return Decode{}, fmt.Errorf("decode %s: write %s, or %s:I with 1 to %d iterations", s, name, name, maxIterations)
			}
		}
		return d, nil
	}
	return Decode{}, fmt.Errorf("unknown decode %q: use greedy, sample:K, pomo, pomo:T, sgbs, eas:I, or for 8 symmetries sample8:K, pomo8, pomo8:T, sgbs8, eas8:I; %s may follow", s, joinSuffix)
}

func readTemperature(s string, t *float64) bool {
	var err error
	*t, err = strconv.ParseFloat(s, 64)
	return err == nil && *t >= minTemperature && *t <= maxTemperature
}

// ValidationDecode returns the decoder of a run's validation and test route. config has checked
// that ParseDecode accepts it.
func ValidationDecode(c *config.Config) Decode {
	d, err := ParseDecode(c.Training.ValidationDecode)
	if err != nil {
		panic("policy: training.validation_decode: " + err.Error())
	}
	return d.suits(c, c.Problem.NumCustomers())
}

// String returns the name that ParseDecode accepts.
func (d Decode) String() string {
	if d.Join {
		d.Join = false
		return d.String() + joinSuffix
	}
	eight := ""
	if d.Symmetries == 8 {
		eight = "8"
	}
	switch {
	case d.Active && d.Iterations == 0:
		return "eas" + eight
	case d.Active:
		return fmt.Sprintf("eas%s:%d", eight, d.Iterations)
	case d.Beam > 0:
		return fmt.Sprintf("sgbs%s:%d,%d", eight, d.Beam, d.Expand)
	case d.Samples > 0 && d.Temperature > 0:
		return fmt.Sprintf("sample%s:%d,%g", eight, d.Samples, d.Temperature)
	case d.Samples > 0:
		return fmt.Sprintf("sample%s:%d", eight, d.Samples)
	case d.Starts && d.Drawn:
		return fmt.Sprintf("pomo%s:%g", eight, d.Temperature)
	case d.Starts:
		return "pomo" + eight
	}
	return "greedy"
}

// temperature returns the temperature of sampling; d's takes precedence over the settings'.
func (d Decode) temperature(settings float64) float64 {
	if d.Temperature > 0 {
		return d.Temperature
	}
	return settings
}

// furtherSamples returns the decoder that samples further routes while time is left, after d has
// made its own: from the same starts, or as many samples.
func (d Decode) furtherSamples(n int) Decode {
	d.Beam, d.Drawn = 0, d.Starts
	if !d.Starts && d.Samples == 0 {
		d.Samples = n
	}
	return d
}

// starts returns the number of routes per row of the batch, for instances of n customers.
func (d Decode) starts(n int) int {
	switch {
	case d.Samples > 0:
		return d.Samples
	case d.Starts:
		return n
	}
	return 1
}

// Routes returns the number of routes per instance of n customers. A beam search begins with as
// many. An active search makes as many in each iteration.
func (d Decode) Routes(n int) int {
	rounds := 1
	if d.Active {
		rounds += cmp.Or(d.Iterations, activeIterations)
	}
	return rounds * d.starts(n) * d.symmetries()
}

func (d Decode) symmetries() int { return max(1, d.Symmetries) }

// fewer returns advice for a user whose routes by this decoder do not fit into memory, or "".
func (d Decode) fewer(n int) string {
	if d.Routes(n) > 1 {
		return "--decode greedy, which builds one route per instance"
	}
	return ""
}

// instead is fewer for given problems. For problems that are too large for every decoder it advises
// another method.
func (d Decode) instead(n int) string {
	return cmp.Or(d.fewer(n), "--method search in place of a policy, whose attention is over all pairs of nodes")
}

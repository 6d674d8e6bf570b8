package policy

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"haul/internal/config"
)

// Decode says how routes are made from a policy. The shortest of all solutions of an instance
// counts.
type Decode struct {
	Samples int // routes drawn at random; 0: the most likely node at every step
	// a route from every customer, begun there by force; drawn by a policy with views, begun as seen
	// from there
	Starts      bool
	Drawn       bool    // with Starts: what the policy chooses is drawn at random
	Temperature float64 // of what is drawn; 0: inference.default_temperature
	Symmetries  int     // 8: every instance under the symmetries of the square; else 1
	// with Starts: hypotheses that a simulation-guided beam search keeps; 0: no search
	Beam   int
	Expand int // nodes that each is continued by
	// with Starts and Drawn: an active search goes on from the routes, for so many iterations; 0: for
	// activeIterations, or as long as there is time
	Active     bool
	Iterations int
	Join       bool // routes of different tours are put together (joined.go)
}

// Draws tells whether routes depend on a seed.
func (d Decode) Draws() bool { return d.Samples > 0 || d.Drawn }

// DecodeUsage tells a user of the decoders.
const DecodeUsage = "how to make routes: greedy; sample:K (the best of K samples); pomo (one greedy solution from every first customer); pomo:T (the same, sampled at temperature T); " +
	"sgbs (beam search); eas:I (active search: I iterations that learn on the instance). An 8, as in pomo8, pomo8:T, sample8:K, sgbs8 and eas8:I, adds the 8 symmetries of the square. " +
	"+join, as in pomo8:1+join, combines routes of different solutions (not after greedy or sgbs)"

// Greedy is one route an instance, the most likely node at every step.
var Greedy = Decode{Symmetries: 1}

// Sizes up to which the default decoder of one problem is as thorough as about a second on two
// cores allows: the time of all of its routes grows with the cube of its customers.
const (
	MostForPomo8 = 200
	MostForPomo  = 2 * MostForPomo8 // an eighth of the routes, of twice the length
)

// DecodeFor is the default decoder of a policy with these settings for one problem of n customers.
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

// Thorough is DecodeFor where time does not matter.
func Thorough(c *config.Config, n int) Decode { return Decode{Starts: true, Symmetries: 8}.suits(c, n) }

// sureOf is how many times the customers that a policy was trained on a problem may have for drawn
// routes to be better than the most likely ones. Of cvrp20's by pomo8 they are 0.40 % shorter at 25
// customers, 0.45 % at 35, 0.28 % at 40 and 0.2 % longer at 50.
const sureOf = 2

// suits is d as a policy with these settings was trained for it, on problems of n customers: starts
// that are viewed are for routes that are drawn.
func (d Decode) suits(c *config.Config, n int) Decode {
	if c.Model.StartViews && d.Starts && float64(n) <= sureOf*float64(c.Problem.NumCustomers()) {
		d.Drawn, d.Temperature = true, 1
	}
	return d
}

// DrawnFor is what draws the routes of starts that d makes as the most likely ones, where a policy
// with these settings was trained for that on problems of n customers; "" where it was not.
func (d Decode) DrawnFor(c *config.Config, n int) string {
	drawn := d.suits(c, n)
	if d.Beam > 0 || d.Drawn || !drawn.Drawn {
		return ""
	}
	return drawn.String()
}

// maxSamples keeps a slip of the hand from asking for all memory.
const maxSamples = 1 << 16

// What a beam search keeps and tries by default, and at most.
const (
	beamWidth = 4
	maxBeam   = 64
)

// Iterations of an active search where neither a number nor a time is said, and at most.
const (
	activeIterations = 200
	maxIterations    = 1_000_000
)

// joinSuffix is how a decoder says that it joins.
const joinSuffix = "+join"

// Temperatures that a decoder may be given, as inference.default_temperature may.
const (
	minTemperature = 1e-3
	maxTemperature = 1e3
)

// ParseDecode reads greedy, sample:K, pomo (N starts), sgbs, and sample8:K, pomo8 and sgbs8 for the
// 8 symmetries. pomo:T draws the routes of its starts at temperature T, sample:K,T has one too, and
// sgbs:B,G says how many hypotheses are kept and how many nodes each is continued by. eas:I, and
// eas8:I with the symmetries, is an active search of I iterations. Behind all that make many routes
// and keep them +join may stand.
func ParseDecode(s string) (Decode, error) {
	if plain, join := strings.CutSuffix(s, joinSuffix); join {
		d, err := ParseDecode(plain)
		if err == nil && (d.Join || d.Beam > 0 || d.Routes(2) < 2) {
			err = fmt.Errorf("decode %s: %s goes behind pomo, sample:K with several routes and eas, once", s, joinSuffix)
		}
		d.Join = true
		return d, err
	}
	if i := strings.IndexByte(s, '+'); i > 0 && s[i-1] != 'e' { // 1e+2 is a temperature
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

// ValidationDecode is how a run's validation and its test route; the settings hold it to what
// ParseDecode knows.
func ValidationDecode(c *config.Config) Decode {
	d, err := ParseDecode(c.Training.ValidationDecode)
	if err != nil {
		panic("policy: training.validation_decode: " + err.Error())
	}
	return d.suits(c, c.Problem.NumCustomers())
}

// String is what ParseDecode reads.
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

// temperature is that of what is drawn, where the settings have one of their own.
func (d Decode) temperature(settings float64) float64 {
	if d.Temperature > 0 {
		return d.Temperature
	}
	return settings
}

// forever is what is drawn, round after round, once the routes of d are made: from the same starts,
// or as many again.
func (d Decode) forever(n int) Decode {
	d.Beam, d.Drawn = 0, d.Starts
	if !d.Starts && d.Samples == 0 {
		d.Samples = n
	}
	return d
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

// Routes is the number of routes an instance of n customers is given; a beam search begins with
// them. Those of an active search are as many again per iteration.
func (d Decode) Routes(n int) int {
	rounds := 1
	if d.Active {
		rounds += cmp.Or(d.Iterations, activeIterations)
	}
	return rounds * d.starts(n) * d.symmetries()
}

func (d Decode) symmetries() int { return max(1, d.Symmetries) }

// fewer is what a user changes where routes by this decoder do not fit.
func (d Decode) fewer(n int) string {
	if d.Routes(n) > 1 {
		return "--decode greedy, which builds one route per instance"
	}
	return ""
}

// instead is fewer for problems that are given: those that are too large for any decoder have
// another method.
func (d Decode) instead(n int) string {
	return cmp.Or(d.fewer(n), "--method search in place of a policy, whose attention is over all pairs of nodes")
}

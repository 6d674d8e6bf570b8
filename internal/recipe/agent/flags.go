package agent

import (
	"math"
	"strconv"
	"strings"

	"haul/internal/run"
)

// Flags are checked before any file is read, because checkpoints and histories may be large.

func checkData(f run.Flags) error {
	switch data := f.String("data"); data {
	case DataAuto, DataDevice, DataHost:
		return nil
	default:
		return run.Usagef("unknown --data %q: use %s, %s or %s", data, DataDevice, DataHost, DataAuto)
	}
}

func checkGoals(f run.Flags) error {
	switch goals := f.String("goals"); goals {
	case "held-out", "validation", "train", "all":
		return nil
	default:
		return run.Usagef("unknown --goals %q: use held-out, validation, train or all", goals)
	}
}

func checkTemperature(f run.Flags) error { return notBelowZero(f, "temperature") }

func checkSearch(f run.Flags) error { return notBelowZero(f, "search") }

func notBelowZero(f run.Flags, name string) error {
	if t := f.Float(name); !(t >= 0) || math.IsInf(t, 0) {
		return run.Usagef("--%s is %g: it must be finite and not below 0", name, t)
	}
	return nil
}

// checkTune checks the temperatures to try.
func checkTune(f run.Flags) error {
	_, err := parseTemperatures(f)
	return err
}

// parseTemperatures parses --tune: T, or T:S to search at temperature S.
func parseTemperatures(f run.Flags) (out []temperatures, err error) {
	text := f.String("tune")
	if text == "" {
		return nil, nil
	}
	if f.Changed("temperature") || f.Changed("search") {
		return nil, run.Usagef("--tune chooses the temperature and --temperature or --search gives it: use one of them")
	}
	for s := range strings.SplitSeq(text, ",") {
		use, search, both := strings.Cut(strings.TrimSpace(s), ":")
		if !both {
			search = use
		}
		var h temperatures
		h.use, err = strconv.ParseFloat(use, 64)
		if err == nil {
			h.search, err = strconv.ParseFloat(search, 64)
		}
		if err != nil || !(h.use >= 0) || !(h.search >= 0) || math.IsInf(h.use+h.search, 0) {
			return nil, run.Usagef("--tune %q: write temperatures from 0 on as 0.5,0.7:1", text)
		}
		out = append(out, h)
	}
	return out, nil
}

// usualTemperatures returns the temperatures that eval_tune tries.
func usualTemperatures() (out []temperatures) {
	for _, use := range []float64{0.4, 0.7, 1} {
		for _, search := range []float64{0.7, 1, 1.3} {
			out = append(out, temperatures{use, search})
		}
	}
	return out
}

// atLeastOne returns a check that refuses values below 1. An absent flag is 0 and stands for the
// setting.
func atLeastOne(name string) func(run.Flags) error {
	return func(f run.Flags) error {
		if n := f.Int(name); f.Changed(name) && n < 1 {
			return run.Usagef("--%s is %d: at least 1 is needed", name, n)
		}
		return nil
	}
}

// checkJudging checks all flags of an evaluation.
func checkJudging(f run.Flags) error {
	for _, flag := range about.EvalFlags {
		if flag.Check != nil {
			if err := flag.Check(f); err != nil {
				return err
			}
		}
	}
	return nil
}

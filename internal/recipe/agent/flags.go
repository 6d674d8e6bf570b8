package agent

import (
	"math"
	"strconv"
	"strings"

	"haul/internal/run"
)

// What is wrong with a flag is said before any file is read: checkpoints and histories may be
// large, and a slip of the hand has nothing to do with them.

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

func checkTemperature(f run.Flags) error {
	if t := f.Float("temperature"); !(t >= 0) {
		return run.Usagef("--temperature is %g: it must not be below 0", t)
	}
	return nil
}

// checkTune reads the temperatures to try.
func checkTune(f run.Flags) error {
	_, err := temperatures(f)
	return err
}

func temperatures(f run.Flags) (out []float64, err error) {
	text := f.String("tune")
	if text == "" {
		return nil, nil
	}
	if f.Changed("temperature") {
		return nil, run.Usagef("--tune chooses the temperature and --temperature gives it: use one of them")
	}
	for s := range strings.SplitSeq(text, ",") {
		t, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || !(t >= 0) || math.IsInf(t, 0) {
			return nil, run.Usagef("--tune %q: write temperatures from 0 on as 0.5,0.7,1", text)
		}
		out = append(out, t)
	}
	return out, nil
}

// atLeastOne refuses less of what a flag counts; 0 stands for the settings' own where it is not
// given.
func atLeastOne(name string) func(run.Flags) error {
	return func(f run.Flags) error {
		if n := f.Int(name); f.Changed(name) && n < 1 {
			return run.Usagef("--%s is %d: at least 1 is needed", name, n)
		}
		return nil
	}
}

// checkJudging is all of the flags of an evaluation.
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

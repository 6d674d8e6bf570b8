package train

import (
	"fmt"
	"strings"

	"haul/internal/config"
)

// modelDiff names the model's keys in which two settings differ: ": model.hidden_dim differs", or nothing.
func modelDiff(file, run *config.Config) string {
	f, r := file.Model, run.Model
	return differing([]sameKey{
		{"model.hidden_dim", f.HiddenDim == r.HiddenDim},
		{"model.num_heads", f.NumHeads == r.NumHeads},
		{"model.num_layers", f.NumLayers == r.NumLayers},
		{"model.feedforward_multiplier", f.FeedforwardMultiplier == r.FeedforwardMultiplier},
	})
}

// sameKey is a key and whether two settings agree in it.
type sameKey struct {
	name string
	same bool
}

// differing names the keys that do not agree.
func differing(all []sameKey) string {
	var keys []string
	for _, k := range all {
		if !k.same {
			keys = append(keys, k.name)
		}
	}
	switch len(keys) {
	case 0:
		return ""
	case 1:
		return ": " + keys[0] + " differs"
	}
	return ": " + strings.Join(keys, ", ") + " differ"
}

// sameRun refuses to continue a run under other settings. Only the number of epochs may change: the schedules then
// aim for the new end.
func sameRun(file, run *config.Config) error {
	a, b := *file, *run
	a.Training.NumEpochs = b.Training.NumEpochs
	return sameText(&a, &b)
}

// sameText compares settings as they are written, line by line.
func sameText(a, b interface{ YAML() ([]byte, error) }) error {
	ya, err := a.YAML()
	if err != nil {
		return err
	}
	yb, err := b.YAML()
	if err != nil {
		return err
	}
	la, lb := strings.Split(string(ya), "\n"), strings.Split(string(yb), "\n")
	for i := range min(len(la), len(lb)) {
		if la[i] != lb[i] {
			return fmt.Errorf("the run was started with %q, not %q: resume with its own settings", strings.TrimSpace(la[i]), strings.TrimSpace(lb[i]))
		}
	}
	return nil
}

func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "a scalar"
	}
	parts := make([]string, len(shape))
	for i, s := range shape {
		parts[i] = fmt.Sprint(s)
	}
	return strings.Join(parts, "×")
}

package train

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/kernel"
)

// The state of checkpoints of before, and of now, is read with every sum and scalar under its name.
func TestStateOfBeforeIsRead(t *testing.T) {
	routes := kernel.Metrics{Steps: 3, GradNorm: 1.5, Sums: kernel.SumsOf(map[string]float64{"rows": 30, "cost": 4.25, "log_cost": 0.5, "baseline": 4, "loss": -2, "entropy": 9, "decode_steps": 77})}
	heads := kernel.Metrics{GradNorm: 2, Sums: kernel.SumsOf(map[string]float64{"action.loss": 1.25, "action.labels": 8, "action.hits": 3, "type.loss": 0.5, "type.labels": 6, "type.hits": 5})}
	running := kernel.State{Step: 2, Instances: 64, Beta1T: 0.81, Beta2T: 0.998, Scalars: map[string]float64{"mean_cost": 5.24, "mean_cost_batches": 200}}
	plain := running
	plain.Scalars = nil
	for name, c := range map[string]struct {
		state  string
		device kernel.State
		sums   kernel.Metrics
	}{
		"before, routing": {`{"device":{"Step":2,"Instances":64,"Beta1T":0.81,"Beta2T":0.998,"EMA":5.24,"EMASteps":200,"Part":0},
			"sums":{"Steps":3,"Trajectory":30,"Cost":4.25,"LogCost":0.5,"BaseCost":4,"Loss":-2,"Entropy":9,"Actions":77,"GradNorm":1.5,
			"Heads":[{"Loss":0,"Labels":0,"Hits":0},{"Loss":0,"Labels":0,"Hits":0}],"BadStep":0}}`, running, routes},
		"before, agent": {`{"device":{"Step":2,"Instances":64,"Beta1T":0.81,"Beta2T":0.998,"EMA":0,"EMASteps":0,"Part":0},
			"sums":{"Steps":0,"Trajectory":0,"Cost":0,"LogCost":0,"BaseCost":0,"Loss":0,"Entropy":0,"Actions":0,"GradNorm":2,
			"Heads":[{"Loss":1.25,"Labels":8,"Hits":3},{"Loss":0.5,"Labels":6,"Hits":5}],"BadStep":0}}`, plain, heads},
		"now": {encode(t, progress{Device: running, Sums: routes}), running, routes},
	} {
		var p progress
		if err := json.Unmarshal([]byte(c.state), &p); err != nil {
			t.Fatal(err)
		}
		if err := takeOld(c.state, &p.Device, &p.Sums); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.device, p.Device) + cmp.Diff(c.sums, p.Sums); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

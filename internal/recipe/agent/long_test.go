package agent

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/model"
	"haul/internal/world/grid"
)

// TestLongContextsReadInTurns: on a CPU, a context of more than a thousand tokens that is read
// token by token into the cache has the same logits as one pass over all tokens. The lengths are
// those around each change of a kernel's tile, and the full context.
func TestLongContextsReadInTurns(t *testing.T) {
	const longest = 1100
	room := grid.Room{Size: 3, Horizon: 4}
	at := []int{1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 1099, 1100}
	for _, positions := range []string{"learned", "rotary"} {
		cfg := tinyAD(t, "use_compressed_context=false", fmt.Sprint("n_transit=", longest), fmt.Sprint("train_source_timesteps=", longest), "tf_positions="+positions)
		m, err := newModel(cfg, room.Space())
		if err != nil {
			t.Fatal(err)
		}
		dev := openCPU(t, 1)
		store, err := dev.NewStore(m.Layout(), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.WriteWeights(model.Initial(m.Layout(), 5)); err != nil {
			t.Fatal(err)
		}
		rules, err := newContextRules(cfg, 2, room.Horizon)
		if err != nil {
			t.Fatal(err)
		}
		net, err := newNetwork(dev, m, store, 1, 1, rules.capacity, "eval_agents")
		if err != nil {
			t.Fatal(err)
		}
		once := newWholeReader(t, dev, cfg, m, store)
		c := newEvalBatch(room, tasks(grid.Goal(grid.At(2, 0))), 1, 300, &rules, net)
		c.reset(1, temperatures{1, 1})
		compared := 0
		for c.live > 0 && c.agents[0].context.prunes < 1 {
			was := slices.Clone(c.agents[0].context.words)
			if err := c.turn(); err != nil {
				t.Fatal(err)
			}
			n := len(was) / rules.width
			if !c.agents[0].acting || !slices.Contains(at, n) {
				continue
			}
			compared++
			if diff := cmp.Diff(once.read(t, was), net.hostLogits[:c.width], cmpopts.EquateApprox(1e-4, 1e-5)); diff != "" {
				t.Fatalf("%s positions, %d tokens: %s", positions, n, diff)
			}
		}
		if compared != len(at) {
			t.Errorf("%s positions: %d of %d lengths were compared", positions, compared, len(at))
		}
	}
}

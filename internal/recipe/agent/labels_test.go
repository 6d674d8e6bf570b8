package agent

import (
	"strings"
	"testing"

	"haul/internal/config"

	"haul/internal/kernel/host"
)

// TestLabelsOfRooms: in rooms, labels "best" are the best actions in hindsight. Labels "found" are
// the same after the sequence has shown a reward, and the learner's actions before that.
func TestLabelsOfRooms(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	labels := map[string][]int32{}
	var index []int32
	for _, kind := range []string{config.LabelsActions, config.LabelsBest, config.LabelsFound} {
		d, err := newDataset(h, tinyAD(t, "labels="+kind))
		if err != nil {
			t.Fatal(err)
		}
		fill, err := host.Fill(d.trainSpec, d.train)
		if err != nil {
			t.Fatal(err)
		}
		var parts [][]int32
		for _, n := range d.trainSpec.Words() {
			parts = append(parts, make([]int32, n))
		}
		for row := range uint64(20) {
			if err := fill(row, parts); err != nil {
				t.Fatal(err)
			}
			labels[kind] = append(labels[kind], parts[1]...)
			if kind == config.LabelsFound {
				index = append(index, parts[0]...)
			}
		}
	}
	own, best, found := labels[config.LabelsActions], labels[config.LabelsBest], labels[config.LabelsFound]
	const fields, reward, position = 6, 3, 5
	paid, differ, others := false, 0, 0
	for i := 0; i < len(own); i += 2 {
		token := index[i/2*fields:][:fields]
		paid = paid && token[position] > 0 || token[reward] > 0
		want := own[i]
		if paid {
			want = best[i]
		}
		if found[i] != want || found[i+1] != own[i+1] {
			t.Fatalf("token %d: label %d, the learner's %d, the best %d, a reward told: %v", i/2, found[i], own[i], best[i], paid)
		}
		if own[i] != best[i] {
			differ++
			if !paid {
				others++
			}
		}
	}
	if differ == 0 || others == 0 || others == differ {
		t.Errorf("%d labels differ, %d of them before a reward: the test cannot tell the kinds apart", differ, others)
	}
	trainedAgent(t, openReference(), h, "labels=found")
	if _, err := config.LoadAD("ad_dr", []string{"labels=found", "method=iql"}); err == nil || !strings.Contains(err.Error(), "labels found") {
		t.Error(err)
	}
}

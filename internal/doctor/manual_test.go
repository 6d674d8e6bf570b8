package doctor

import (
	"os"
	"strings"
	"testing"

	"haul/internal/doctor/rule"
)

// Every finding refers to an existing section of the manual: a row in the table of findings, and an
// example before and after with at least two times.
func TestFindingsHaveTheirPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	manual := string(data)
	all := []string{"straggler", "imbalance"} // over ranks
	for _, r := range rule.Rules {
		all = append(all, r.ID)
	}
	for _, id := range all {
		file, section, _ := strings.Cut(rule.MoreOn(id), "#")
		if file != "docs/doctor.md" || section != id {
			t.Errorf("%s points at %s#%s", id, file, section)
		}
		if !strings.Contains(manual, "\n| `"+id+"` |") {
			t.Errorf("%s has no row in the table of findings", id)
		}
		_, body, ok := strings.Cut(manual, "\n### "+id+"\n")
		body, _, _ = strings.Cut(body, "\n#")
		if times := strings.Count(body, " ms") + strings.Count(body, "\nms") + strings.Count(body, " µs"); !ok || times < 2 {
			t.Errorf("%s has no before and after: %q", id, body)
		}
	}
}

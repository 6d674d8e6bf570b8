package trace

import (
	"strings"
	"testing"
)

// PyTorch calls its first process group 0: a name of one character is a name.
func TestGroupsOfOneCharacter(t *testing.T) {
	tr, err := Read(strings.NewReader(`{"traceEvents":[{"ph":"X","cat":"user_annotation","name":"nccl:all_reduce","pid":1,"tid":1,"ts":1,"dur":5,"args":{"Process Group Name":"0"}},
{"ph":"X","cat":"user_annotation","name":"nccl:all_reduce","pid":1,"tid":1,"ts":9,"dur":5,"args":{}}]}`))
	if err != nil || len(tr.Notes) != 2 {
		t.Fatal(err, len(tr.Notes))
	}
	if g := tr.Notes[0].Group; g == 0 || tr.Names.List[g].Text != "0" || tr.Notes[1].Group != 0 {
		t.Errorf("groups %d and %d", g, tr.Notes[1].Group)
	}
}

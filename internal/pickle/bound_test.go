package pickle

import (
	"strings"
	"testing"
)

// So many values are made and no more, wherever they go.
func TestValuesAreBounded(t *testing.T) {
	m := &machine{made: maxValues - 1}
	if err := m.push(nil); err != nil {
		t.Errorf("the last: %v", err)
	}
	if err := m.push(nil); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("one more: %v", err)
	}
	if len(m.stack) != 1 {
		t.Errorf("%d values", len(m.stack))
	}
}

package draw

import (
	"bytes"
	"strings"
	"testing"
)

func TestRooms(t *testing.T) {
	walks := []Walk{
		{Caption: "first episode · return 0", Cells: [][2]int{{4, 4}, {4, 3}, {4, 3}, {5, 3}}, Goal: [2]int{8, 0}},
		{Caption: "episode 50 · return 13", Cells: [][2]int{{4, 4}, {5, 4}, {6, 4}}, Goal: [2]int{8, 0}},
		{Caption: "nothing walked"},
	}
	var svg, png bytes.Buffer
	if err := Rooms(&svg, SVG, "agent", 9, walks...); err != nil {
		t.Fatal(err)
	}
	for _, w := range walks {
		if !strings.Contains(svg.String(), w.Caption) {
			t.Errorf("%q is not written", w.Caption)
		}
	}
	if err := Rooms(&png, PNG, "agent", 9, walks...); err != nil || !bytes.HasPrefix(png.Bytes(), []byte("\x89PNG")) {
		t.Errorf("png: %v", err)
	}
	var again bytes.Buffer
	if err := Rooms(&again, SVG, "agent", 9, walks...); err != nil || !bytes.Equal(again.Bytes(), svg.Bytes()) {
		t.Error("two drawings of one walk differ")
	}
}

// TestRoomsDrawKeys: a key is one square in a separate colour.
func TestRoomsDrawKeys(t *testing.T) {
	count := func(w Walk) int {
		var svg bytes.Buffer
		if err := Rooms(&svg, SVG, "agent", 5, w); err != nil {
			t.Fatal(err)
		}
		return strings.Count(strings.ToLower(svg.String()), "ddcc77")
	}
	w := Walk{Cells: [][2]int{{2, 2}, {2, 1}}, Goal: [2]int{4, 0}}
	if n := count(w); n != 0 {
		t.Errorf("%d keys in a room without one", n)
	}
	w.Key = &[2]int{0, 3}
	if n := count(w); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

package kernel_test

import (
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel"
)

// TestNumberedElementsStayInTheirSite: the calls of a site reach into the next one's exactly where
// Numbered says no.
func TestNumberedElementsStayInTheirSite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 5000).Draw(t, "width")
		rows := rapid.IntRange(1, 40_000).Draw(t, "rows")
		// the last column of a padded row: a row's highest call
		draw, _, _ := kernel.Drop{Site: 4}.Call(rows-1, (width+31)/32*32-1, width)
		if stays := draw>>24 == 4; stays != (kernel.Drop{}).Numbered(rows, width) {
			t.Fatalf("%d rows of %d columns: the last draw is %#x", rows, width, draw)
		}
	})
}

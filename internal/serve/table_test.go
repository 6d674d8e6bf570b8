package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file past what is kept says that it was cut, wherever its rows end.
func TestLongTablesAreCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	row := strings.Repeat("x", 999) + "\n"
	write(t, path, "word\n"+strings.Repeat(row, tableBytes/len(row)+2))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	table := &table{}
	grown, fresh, err := table.follow(func() (*os.File, error) { return os.Open(path) }, info)
	if err != nil || !grown || !fresh || !table.Cut || len(table.Rows) < tableBytes/len(row)-1 {
		t.Errorf("%v, %v, %v: %d rows, cut %v", grown, fresh, err, len(table.Rows), table.Cut)
	}
}

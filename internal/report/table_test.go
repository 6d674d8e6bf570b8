package report

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var samples = tableOf(new(row))

func TestColumnsFollowTheTags(t *testing.T) {
	want := "epoch,cost,val,of,name,best,deep,launches,waits,copies_in,copies_out,allocations"
	if got := strings.Join(samples.header(), ","); got != want {
		t.Errorf("columns are %s, want %s", got, want)
	}
}

// TestColumnsThatRepeat: repeated columns are last, with their second name and the same values.
// Files without them can be read.
func TestColumnsThatRepeat(t *testing.T) {
	type row struct {
		At   int     `csv:"at"`
		Cost float64 `csv:"train_cost" also:"cost"`
		Name string  `csv:"name"`
	}
	table := tableOf(new(row))
	if got := strings.Join(table.header(), ","); got != "at,train_cost,name,cost" {
		t.Errorf("columns are %s", got)
	}
	if got := strings.Join(table.cells(&row{3, 1.5, "x"}), ","); got != "3,1.5,x,1.5" {
		t.Errorf("a row is %s", got)
	}
	for _, text := range []string{"at,train_cost,name,cost\n3,1.5,x,1.5\n", "at,train_cost,name\n3,1.5,x\n"} {
		path := filepath.Join(t.TempDir(), "a.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if rows, err := table.read(path, 3); err != nil || len(rows) != 1 || *rows[0].(*row) != (row{3, 1.5, "x"}) {
			t.Errorf("%q: %v, %v", text, rows, err)
		}
	}
	if _, ok := table.match([]string{"at", "cost", "name"}); ok {
		t.Error("a second name is taken for the first")
	}
}

// A row type that no table can hold panics at once.
func TestRowsThatNoTableHolds(t *testing.T) {
	for name, row := range map[string]any{
		"a slice": new(struct {
			At int   `csv:"at"`
			V  []int `csv:"v"`
		}),
		"no place": new(struct {
			V float64 `csv:"v"`
		}),
		"no column": new(struct{ V int }),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", name)
				}
			}()
			tableOf(row)
		}()
	}
}

// anyRow generates a row with every field set.
func anyRow(t *rapid.T) *row {
	r := new(row)
	number := rapid.Float64Range(-1e12, 1e12)
	for _, c := range samples.columns {
		switch v := c.of(reflect.ValueOf(r).Elem()).(type) {
		case *int:
			*v = rapid.IntRange(1, 1e6).Draw(t, c.name)
		case **int:
			if rapid.Bool().Draw(t, c.name+" counted") {
				x := rapid.Int().Draw(t, c.name)
				*v = &x
			}
		case *int64:
			*v = rapid.Int64().Draw(t, c.name)
		case *float64:
			*v = number.Draw(t, c.name)
		case **float64:
			if rapid.Bool().Draw(t, c.name+" measured") {
				x := number.Draw(t, c.name)
				*v = &x
			}
		case *bool:
			*v = rapid.Bool().Draw(t, c.name)
		case *string:
			*v = rapid.SampledFrom([]string{"", "optimum", "a \"quoted\", name"}).Draw(t, c.name)
		}
	}
	return r
}

func TestCellsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRow(t)
		got, err := samples.parse(samples.cells(want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestResumeCutsTheHistory(t *testing.T) {
	whole := encode(samples.header())
	for e := 1; e <= 4; e++ {
		whole = append(whole, encode(samples.cells(rowOf(e)))...)
	}
	third := len(whole) - 20 // inside the fourth row
	for _, c := range []struct {
		name, text string
		done, want int
	}{
		{"fresh", string(whole), 0, 0},
		{"all", string(whole), 4, 4},
		{"past the checkpoint", string(whole), 2, 2},
		{"a torn row", string(whole[:third]), 4, 3},
		{"no file", "", 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "csv", "history.csv")
			if c.text != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			f, rows, err := samples.open(path, c.done)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.add(encode(samples.cells(rowOf(c.want + 1)))); err != nil {
				t.Fatal(err)
			}
			if err := f.close(); err != nil {
				t.Fatal(err)
			}
			if len(rows) != c.want {
				t.Errorf("%d rows are kept, want %d", len(rows), c.want)
			}
			again, err := samples.read(path, 100)
			if err != nil || len(again) != c.want+1 || samples.at(again[c.want]) != c.want+1 {
				t.Errorf("%d rows in the file, %v", len(again), err)
			}
		})
	}
}

// TestOlderHistoryIsReadOn: a file without a column that may be empty keeps its rows, and they get
// the column. A file with unknown columns, without a required one, or with an incomplete row does
// not.
func TestOlderHistoryIsReadOn(t *testing.T) {
	for _, c := range []struct {
		name, drop, add string
		rows            int
	}{{"val was not kept", "val", "", 3}, {"cost must be there", "cost", "", -1}, {"another column", "", "new", -1}, {"one for another", "val", "new", -1}} {
		path := filepath.Join(t.TempDir(), "history.csv")
		var text [][]string
		for e := range 4 {
			cells := samples.header()
			if e > 0 {
				cells = samples.cells(rowOf(e))
			}
			if k := slices.Index(samples.header(), c.drop); k >= 0 {
				cells = slices.Delete(cells, k, k+1)
			}
			if c.add != "" {
				cells = append(cells, c.add)
			}
			text = append(text, cells)
		}
		if err := os.WriteFile(path, encode(text...), 0o600); err != nil {
			t.Fatal(err)
		}
		f, rows, err := samples.open(path, 3)
		if c.rows < 0 {
			if err == nil || !strings.Contains(err.Error(), "columns differ") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || len(rows) != c.rows || rows[2].(*row).Val != nil || rows[2].(*row).Cost != rowOf(3).Cost || rows[2].(*row).Launches != rowOf(3).Launches {
			t.Fatalf("%s: %v, %+v", c.name, err, rows)
		}
		if err := f.close(); err != nil {
			t.Error(err)
		}
		if again, err := samples.read(path, 3); err != nil || len(again) != c.rows {
			t.Errorf("%s: written anew it is %v, %v", c.name, again, err)
		}
	}
}

func TestForeignHistoryIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.csv")
	const text = "epoch,other\n1,2\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := samples.open(path, 3); err == nil || !strings.Contains(err.Error(), "columns differ") {
		t.Errorf("error is %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

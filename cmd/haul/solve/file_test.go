package solve_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
)

// TestSolveStandardInput: a problem or a table that is piped in is solved as its file would be.
func TestSolveStandardInput(t *testing.T) {
	clitest.OnStandardInput(t, clitest.SquareVRP, func() {
		if r := inprocess.Object(t, "solve", "-", "--json"); r["cost"] != 68.0 || r["name"] != "square" {
			t.Errorf("%v", r)
		}
	})
	for _, table := range []string{"id,x,y,demand\nd,0,0,0\na,3,4,1\n", "id;x;y;demand\nd;0;0;0\na;3,0;4;1\n"} {
		clitest.OnStandardInput(t, table, func() {
			if r := inprocess.Object(t, "solve", "-", "--capacity", "5", "--json"); r["cost"] != 10.0 || r["customers"] != 1.0 {
				t.Errorf("%v", r)
			}
		})
	}
	clitest.OnStandardInput(t, "COMMENT : a square, every demand, and no more\n"+clitest.SquareVRP, func() { // a .vrp whose comment reads like a header
		if r := inprocess.Object(t, "solve", "-", "--json"); r["cost"] != 68.0 {
			t.Errorf("a comment first: %v", r)
		}
	})
	clitest.OnStandardInput(t, "# a depot and a customer\n\nid,x,y,demand\nd,0,0,0\na,3,4,5\n", func() {
		if r := inprocess.Object(t, "solve", "-", "--capacity", "5", "--json"); r["cost"] != 10.0 {
			t.Errorf("a comment before the header: %v", r)
		}
	})
	clitest.OnStandardInput(t, "", func() {
		inprocess.Refused(t, []string{"solve", "-"}, cli.ExitFailed, "standard input:1: the file is empty")
	})
	clitest.OnStandardInput(t, clitest.SquareVRP, func() { inprocess.Refused(t, []string{"solve", "-", "--capacity", "5"}, cli.ExitUsage, "--capacity") })
}

// TestTablesByAnyName: a table is one by its header where its name does not say, through a pipe
// too; a problem stays one.
func TestTablesByAnyName(t *testing.T) {
	table := "id\tx\ty\tdemand\nd\t0\t0\t0\na\t3\t4\t1\n"
	for _, name := range []string{"stops.tsv", "stops.txt", "stops"} {
		if r := inprocess.Object(t, "solve", clitest.Write(t, name, table), "--capacity", "5", "--json"); r["cost"] != 10.0 || r["name"] != "stops" {
			t.Errorf("%s: %v", name, r)
		}
		inprocess.Refused(t, []string{"solve", clitest.Write(t, name, table)}, cli.ExitUsage, "--capacity is missing")
	}
	if r := inprocess.Object(t, "solve", clitest.Write(t, "square.txt", clitest.SquareVRP), "--json"); r["cost"] != 68.0 {
		t.Errorf("%v", r)
	}
	if runtime.GOOS != "linux" {
		return
	}
	for text, args := range map[string][]string{table: {"--capacity", "5"}, clitest.SquareVRP: nil} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, text)
		w.Close()
		if r := inprocess.Object(t, append([]string{"solve", fmt.Sprintf("/dev/fd/%d", r.Fd()), "--json"}, args...)...); r["cost"] != 10.0 && r["cost"] != 68.0 {
			t.Errorf("%v", r)
		}
		r.Close()
	}
}

// TestCostsHaveTheirUnit: places on the globe are metres apart, which a number alone does not tell.
func TestCostsHaveTheirUnit(t *testing.T) {
	r := inprocess.Run(t, "solve", clitest.Write(t, "globe.csv", "id,lat,lon,demand\nd,0,0,0\na,0,1,1\n"), "--capacity", "1")
	if r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "cost    222,390 metres\n") {
		t.Errorf("exit %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
}

// TestTheShortestTime: a time that reading the file has spent still gives routes.
func TestTheShortestTime(t *testing.T) {
	for _, time := range []string{"1ns", "9ns", "1us"} {
		if r := inprocess.Run(t, "solve", clitest.Write(t, "square.vrp", clitest.SquareVRP), "--time", time); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "cost    68\n") {
			t.Errorf("%s: %+v", time, r)
		}
	}
}

package files

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/limits"
	"haul/internal/limits/limitstest"
	"haul/internal/vrp"
)

// samples are a problem of each format.
func samples() []string {
	return []string{solomonText, lilimText, cordeauText, dialectText, small,
		"id,x,y,demand,ready,due,service,pickup,prize,skills,group\nd,0,0,,8:00,18:00,,,,,\na,1,0,2,8:30,9:15,5,,,1,\nb,2,0,0,,600,0:10,4,,,g\nc,3,0,1,,,,,7.5,,g\n",
		"NAME: t\nTYPE: PDPTW\nDIMENSION: 3\nVEHICLES: 2\nCAPACITY: 9\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 1 1\n3 2 2\nPICKUP_AND_DELIVERY_SECTION\n1 0 0 99 0 0 0\n2 4 1 50 2 0 3\n3 -4 2 60 2 2 0\nDEPOT_SECTION\n1\n-1\nEOF\n"}
}

// validateRead checks what holds of any reading: a problem that passes Check, or one line with the
// name.
func validateRead(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte) *vrp.Problem {
	t.Helper()
	p, err := ReadProblem(bytes.NewReader(text), "f", Options{Capacity: 10})
	if err != nil {
		if !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("not one line with its place: %q\n%s", err, text)
		}
		return nil
	}
	judged := *p
	if judged.Metric == vrp.GreatCircle {
		judged.Speed = 1
	}
	if err := judged.Check(); err != nil {
		t.Fatalf("what was read does not pass: %v\n%s", err, text)
	}
	return p
}

// TestBrokenFiles: thousands of files with a line, a word or a number changed, dropped or doubled.
func TestBrokenFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	read := 0
	for _, text := range samples() {
		if validateRead(t, []byte(text)) == nil {
			t.Fatalf("a sample is refused:\n%s", text)
		}
		for range 500 {
			lines := strings.SplitAfter(text, "\n")
			for range 1 + r.IntN(3) {
				i := r.IntN(len(lines))
				words := strings.Fields(lines[i])
				switch r.IntN(6) {
				case 0:
					lines = append(lines[:i:i], lines[i+1:]...)
				case 1:
					lines = append(lines[:i:i], append([]string{lines[i]}, lines[i:]...)...)
				case 2:
					lines[i] = lines[i][:r.IntN(len(lines[i])+1)] + "\n"
				default:
					if len(words) > 0 {
						words[r.IntN(len(words))] = []string{"-1", "0", "1e99", "nan", "x", "2000000000", "3", "1.5", ":", "inf"}[r.IntN(10)]
						lines[i] = strings.Join(words, " ") + "\n"
					}
				}
				if len(lines) == 0 {
					lines = []string{""}
				}
			}
			if validateRead(t, []byte(strings.Join(lines, ""))) != nil {
				read++
			}
		}
	}
	if read == 0 || read > 3000 {
		t.Errorf("%d of 3500 broken files are read", read)
	}
}

func FuzzReadAny(f *testing.F) {
	for _, text := range samples() {
		f.Add([]byte(text))
	}
	f.Add([]byte("{")) // JSON that ends
	low := limits.ForCommand()
	var raised []string
	for _, l := range limits.Table {
		if l.Key != limits.Table[limits.Depth].Key {
			raised = append(raised, fmt.Sprintf("%s=%d", l.Key, max(20, min(l.Service, 2000))))
		}
	}
	if err := low.Raise(raised); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() { validateRead(t, data) }, data)
		// What is read within low limits passes none of them, and what is refused by one names it.
		p, err := ReadProblem(bytes.NewReader(data), "f", Options{Capacity: 10, Limits: low})
		if over := (*limits.Error)(nil); errors.As(err, &over) && over.Most != low.Most(over.Limit) || err == nil && p.Within(low) != nil {
			t.Errorf("%v, %v", err, p)
		}
		count := newTally(Options{Limits: low})
		if _, err := readBook(data, "f", count); count.rows > low.Most(limits.Rows)+1 || count.sheets > low.Most(limits.Sheets)+1 ||
			count.cells > low.Most(limits.Cells)+1<<14 || count.unpacked > low.Most(limits.Unpacked)+1<<16 {
			t.Errorf("%+v was read: %v", count, err)
		}
	})
}

// TestTextFormatsReadBack: what is written in a text format is what is read from it.
func TestTextFormatsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"solomon", "lilim", "cordeau"}).Draw(t, "format")
		depots, customers := 1, 2*rapid.IntRange(1, 4).Draw(t, "pairs")
		p := &vrp.Problem{Name: "f", Capacity: 20, Vehicles: 3, Metric: vrp.Thousandths}
		if kind == "cordeau" {
			depots = rapid.IntRange(2, 4).Draw(t, "depots")
			p.Depots, p.Capacity, p.Vehicles = depots, 0, 0
			for d := range depots {
				v := vrp.NewVehicleType(20)
				v.Count, v.Start, v.End = 2, d, d
				v.Numbers = []int32{int32(2 * d), int32(2*d + 1)}
				if rapid.Bool().Draw(t, "limited") {
					v.MaxDuration = 500
				}
				p.Fleet = append(p.Fleet, v)
			}
		}
		number := rapid.Float64Range(0, 1000)
		for v := range depots + customers {
			p.X, p.Y = append(p.X, number.Draw(t, "x")), append(p.Y, number.Draw(t, "y"))
			from := number.Draw(t, "from")
			p.Windows = append(p.Windows, []vrp.Window{{From: from, To: from + number.Draw(t, "width")}})
			service, demand := 0.0, int32(0)
			if v >= depots {
				service, demand = number.Draw(t, "service"), int32(rapid.IntRange(0, 20).Draw(t, "demand"))
			}
			if kind == "lilim" {
				demand = 0
			}
			p.Service, p.Demand = append(p.Service, service), append(p.Demand, demand)
			if kind == "cordeau" {
				id := v + customers + 1
				if v >= depots {
					id = v - depots + 1
				}
				p.IDs = append(p.IDs, vrpNumber(id))
			}
		}
		if kind == "lilim" {
			for v := 1; v <= customers; v += 2 {
				p.Shipments = append(p.Shipments, vrp.Shipment{Pickup: int32(v), Delivery: int32(v + 1), Amount: []int32{int32(rapid.IntRange(0, 20).Draw(t, "amount"))}})
			}
		}
		var f Format
		for _, known := range Formats {
			if known.Name == kind {
				f = known
			}
		}
		var b bytes.Buffer
		if err := f.Write(&b, p); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if diff := cmp.Diff(p, validateRead(t, b.Bytes())); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
	})
}

func vrpNumber(n int) string { return number(float64(n)) }

package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"haul/cmd/haul/clitest"
	"haul/internal/config"
	"haul/internal/recipe"
	"haul/internal/safetensors"
	"haul/policies"
)

// docs/formats.md names every column, key and tag. What follows compares it with what runs leave,
// not with the structs that they are written from.

// page is a Markdown page by its headings: the rows of the first table under each, heads left out.
type page map[string][][]string

var code = regexp.MustCompile("`([^`]*)`")

func readPage(t *testing.T, name string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	out, at, rows := page{}, "", 0
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "#"):
			at, rows = strings.TrimSpace(strings.TrimLeft(line, "#")), 0
		case strings.HasPrefix(line, "|"):
			if rows++; rows > 2 {
				out[at] = append(out[at], strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"))
			}
		}
	}
	return out
}

// names are what column c of a section's table has in code, in order.
func (p page) names(t *testing.T, section string, c int) (out []string) {
	t.Helper()
	if len(p[section]) == 0 {
		t.Fatalf("docs/formats.md has no table under %q", section)
	}
	for _, row := range p[section] {
		for _, m := range code.FindAllStringSubmatch(row[c], -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// columns are the names of a section's columns, in order: a second name in a row is of a column
// behind all others.
func (p page) columns(section string) (out []string) {
	var again []string
	for _, row := range p[section] {
		for i, m := range code.FindAllStringSubmatch(row[1], -1) {
			if i == 0 {
				out = append(out, m[1])
			} else {
				again = append(again, m[1])
			}
		}
	}
	return append(out, again...)
}

// optional are the keys of a section that an object may lack.
func (p page) optional(section string) (out []string) {
	for _, row := range p[section] {
		if len(row) == 2 && strings.HasPrefix(strings.TrimSpace(row[1]), "optional") {
			for _, m := range code.FindAllStringSubmatch(row[0], -1) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// keysOf lists an object's keys, in order.
func keysOf(t *testing.T, line string) (out []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	depth, key := 0, false
	for {
		tok, err := d.Token()
		if err != nil {
			return out
		}
		switch v := tok.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
			key = depth == 1
		case string:
			if depth == 1 && key {
				out = append(out, v)
			}
			key = depth == 1 && !key
		default:
			key = depth == 1
		}
	}
}

// wantKeys compares an object with a section: every key is named there, and every name that is not
// optional is a key.
func (p page) wantKeys(t *testing.T, section, line string, more ...string) {
	t.Helper()
	named, got := append(p.names(t, section, 0), more...), keysOf(t, line)
	for _, k := range got {
		if !slices.Contains(named, k) {
			t.Errorf("docs/formats.md, %s: key %q is not there", section, k)
		}
	}
	for _, k := range named {
		if !slices.Contains(got, k) && !slices.Contains(p.optional(section), k) {
			t.Errorf("docs/formats.md, %s: names %q, the object has %v", section, k, got)
		}
	}
}

// events maps the kinds of a run's objects to the last of each.
func events(t *testing.T, stdout string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(stdout) {
		var v struct{ Event string }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		out[v.Event] = line
	}
	return out
}

// tags lists the curves in a run folder's event files.
func tags(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "events.out.tfevents.") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for len(data) > 0 { // length, its checksum, an event, its checksum
			n := binary.LittleEndian.Uint64(data)
			for _, summary := range fieldsOf(data[12:12+n], 5) {
				for _, value := range fieldsOf(summary, 1) {
					for _, tag := range fieldsOf(value, 1) {
						if !slices.Contains(out, string(tag)) {
							out = append(out, string(tag))
						}
					}
				}
			}
			data = data[16+n:]
		}
	}
	return out
}

// fieldsOf are the length-delimited fields of that number in a protobuf message.
func fieldsOf(message []byte, number protowire.Number) (out [][]byte) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		message = message[size:]
		length := protowire.ConsumeFieldValue(n, kind, message)
		if n == number && kind == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(message)
			out = append(out, v)
		}
		message = message[length:]
	}
	return out
}

// wantRecords compares a run's rows, objects and curves with the sections of its recipe.
func (p page) wantRecords(t *testing.T, dir, recipe string, objects map[string]string) {
	t.Helper()
	var curves []string
	for section := range p {
		kind, file, ok := strings.Cut(strings.TrimPrefix(section, recipe+": "), ", ")
		if !ok || !strings.HasPrefix(section, recipe+": ") {
			continue
		}
		kind = strings.Trim(kind, "`")
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			t.Errorf("docs/formats.md, %s: %v", section, err)
			continue
		}
		header, err := csv.NewReader(bytes.NewReader(text)).Read()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(header, p.columns(section)); diff != "" {
			t.Errorf("docs/formats.md, %s: columns of %s (-) are not those named (+):\n%s", section, file, diff)
		}
		named := []string{"event"}
		for _, k := range p.names(t, section, 0) {
			k, _, _ = strings.Cut(k, ".") // regions.mean_length is a part of regions
			named = append(named, k)
		}
		if diff := cmp.Diff(keysOf(t, objects[kind]), named); diff != "" {
			t.Errorf("docs/formats.md, %s: keys of the object (-) are not those named (+):\n%s", section, diff)
		}
		curves = append(curves, p.names(t, section, 2)...)
	}
	if end := recipe + ": final points in TensorBoard"; p[end] != nil {
		curves = append(curves, p.names(t, end, 0)...)
	}
	got := tags(t, dir)
	slices.Sort(got)
	slices.Sort(curves)
	if diff := cmp.Diff(got, curves); diff != "" {
		t.Errorf("docs/formats.md, %s: curves of TensorBoard (-) are not those named (+):\n%s", recipe, diff)
	}
}

// wantCheckpoint compares a checkpoint's metadata and the families of its tensors.
func (p page) wantCheckpoint(t *testing.T, path string) {
	t.Helper()
	f, err := safetensors.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	named, tensors := p.names(t, "Checkpoints", 0), []string{""}
	for _, name := range named {
		if family, ok := strings.CutSuffix(name, "<parameter>"); ok {
			tensors = append(tensors, family)
		}
	}
	for key := range f.Metadata {
		if !slices.Contains(named, key) {
			t.Errorf("docs/formats.md: metadata %s is not there", key)
		}
	}
	whole, err := os.ReadFile(path) // Load checks the sum and leaves its keys out
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range named {
		if strings.HasPrefix(key, "haul.") && !bytes.Contains(whole, []byte(strconv.Quote(key)+":")) {
			t.Errorf("docs/formats.md: names metadata %s, %s has none", key, path)
		}
	}
	weights := map[string]bool{}
	for _, x := range f.Tensors {
		if !strings.HasPrefix(x.Name, "adam_") && !strings.HasPrefix(x.Name, "baseline.") && !strings.HasPrefix(x.Name, "run.") {
			weights[x.Name] = true
		}
	}
	for _, x := range f.Tensors {
		known := slices.Contains(named, x.Name)
		for _, family := range tensors {
			rest, ok := strings.CutPrefix(x.Name, family)
			known = known || ok && weights[rest]
		}
		if !known {
			t.Errorf("docs/formats.md: tensor %s is not there", x.Name)
		}
	}
}

func TestFormatsPageOfRouting(t *testing.T) {
	wholeOnly(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p, dir := readPage(t, "formats.md"), filepath.Join(t.TempDir(), "run")
	// A rollout baseline has everything that a checkpoint can hold and a p-value in every epoch.
	r := haul(t, "train", "--config", "tiny_1", "--device", "cpu", "--epochs", "1", "--out", dir, "--json", "--set", "problem.num_customers=4",
		"--set", "training.num_batches_per_epoch=2", "--set", "training.batch_size=8", "--set", "training.validation_instances=8", "--set", "model.hidden_dim=16")
	if r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	said := events(t, r.stdout)
	p.wantRecords(t, dir, "GT+RL", said)
	p.wantKeys(t, "GT+RL: `done`", said["done"], "event")
	p.wantCheckpoint(t, filepath.Join(dir, "last.safetensors"))
	r = haul(t, "eval", "--checkpoint", dir, "--device", "cpu", "--count", "8", "--json")
	p.wantKeys(t, "GT+RL: `haul eval`", r.stdout)
	r = haul(t, "policies", "pack", dir, "--out", filepath.Join(t.TempDir(), "p.safetensors"), "--json")
	p.wantKeys(t, "`haul policies pack`", r.stdout)
	for _, name := range policies.Names() {
		p.wantKeys(t, "`haul policies`", haul(t, "policies", name, "--json").stdout)
	}
	set, out := filepath.Join(t.TempDir(), "set.npz"), filepath.Join(t.TempDir(), "routes")
	if r := haul(t, "gen", "grid:4", "--count", "3", "--out", set); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	r = haul(t, "eval", set, "--checkpoint", dir, "--device", "cpu", "--reference", write(t, "costs.txt", "1\n2\n3\n"), "--out", out, "--json")
	p.wantKeys(t, "GT+RL: `haul eval --instances`", r.stdout)
	text, err := os.ReadFile(filepath.Join(out, "costs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "\n")
	if want := strings.Join(p.names(t, "`costs.csv`", 0), ","); head != want {
		t.Errorf("costs.csv has the columns %s, docs/formats.md names %s", head, want)
	}
}

func TestFormatsPageOfTheAgent(t *testing.T) {
	wholeOnly(t)
	p, history := readPage(t, "formats.md"), filepath.Join(t.TempDir(), "room.hist")
	r := haul(t, append(smallRoom[:len(smallRoom):len(smallRoom)], "--out", history, "--json")...)
	p.wantKeys(t, "`haul data darkroom`", r.stdout)
	show := haul(t, "data", "show", history, "--json")
	if show.code != exitDone {
		t.Fatal(show.stderr)
	}
	p.wantKeys(t, "`haul data show`", show.stdout)
	data, err := os.ReadFile(history)
	if err != nil {
		t.Fatal(err)
	}
	const preamble = 64
	p.wantKeys(t, "The JSON block", string(data[preamble+binary.LittleEndian.Uint64(data[16:]):]))

	dir, args := smallAgent(t, history, "--json")
	if r = haul(t, args...); r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	said := events(t, r.stdout)
	p.wantRecords(t, dir, "AD", said)
	p.wantKeys(t, "AD: `done`", said["done"], "event")
	p.wantCheckpoint(t, filepath.Join(dir, "last.safetensors"))
	r = haul(t, "eval", "--checkpoint", dir, "--history", history, "--device", "cpu", "--json")
	in := keysOf(t, said["in_context"])
	p.wantKeys(t, "AD: `haul eval`", r.stdout, slices.DeleteFunc(in, func(k string) bool { return k == "event" })...)
}

func TestFormatsPageOfTheLearner(t *testing.T) {
	wholeOnly(t)
	p, dir := readPage(t, "formats.md"), filepath.Join(t.TempDir(), "run")
	r := haul(t, "train", "--model", "PPO", "--device", "cpu", "--out", dir, "--json", "--set", "grid_size=3", "--set", "horizon=8", "--set", "n_steps=8", "--set", "n_stream=5",
		"--set", "n_epochs=2", "--iterations", "2")
	if r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	said := events(t, r.stdout)
	p.wantRecords(t, dir, "PPO", said)
	p.wantKeys(t, "PPO: `done`", said["done"], "event")
	p.wantCheckpoint(t, filepath.Join(dir, "last.safetensors"))
	r = haul(t, "eval", "--checkpoint", dir, "--device", "cpu", "--json")
	p.wantKeys(t, "PPO: `haul eval`", r.stdout)
}

func TestFormatsPageOfOtherVerbs(t *testing.T) {
	wholeOnly(t)
	p, vrp := readPage(t, "formats.md"), write(t, "square.vrp", clitest.SquareVRP)
	for _, c := range []struct {
		section string
		args    []string
	}{
		{"`haul solve` of generated instances", []string{"eval", "grid:4", "--count", "2", "--json", "--best-known", "0.5"}},
		{"`haul solve FILE`", []string{"solve", vrp, "--json", "--out", filepath.Join(t.TempDir(), "x.sol"), "--best-known", "68"}},
		{"`haul gen`", []string{"gen", "grid:3", "--out", t.TempDir(), "--json"}},
		{"`haul bench step`", []string{"bench", "step", "--config", "tiny_1", "--device", "cpu", "--rounds", "1", "--json", "--set", "training.batch_size=8", "--set", "model.hidden_dim=16"}},
	} {
		r := haul(t, c.args...)
		if r.code != exitDone {
			t.Fatalf("%v: exit %d: %s", c.args, r.code, r.stderr)
		}
		p.wantKeys(t, c.section, r.stdout)
	}
}

// A recipe that the page forgets would be compared with nothing.
func TestFormatsPageHasEveryRecipe(t *testing.T) {
	p := readPage(t, "formats.md")
	for _, name := range recipe.Names() {
		if name == config.RecipeGAT { // its rows are GT+RL's
			text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "formats.md"))
			if err != nil || !strings.Contains(string(text), "GAT+RL writes the same columns to csv/history_gat_rl.csv") {
				t.Errorf("docs/formats.md does not say where %s writes: %v", name, err)
			}
			continue
		}
		records := 0
		for section := range p {
			if strings.HasPrefix(section, name+": ") && strings.Contains(section, ", csv/") {
				records++
			}
		}
		if records == 0 || len(p[name+": `done`"]) == 0 {
			t.Errorf("docs/formats.md has no records of %s, or no `done`", name)
		}
	}
}

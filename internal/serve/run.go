package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"haul/internal/config"
	"haul/internal/run"
)

// The states of a run.
const (
	running = "running" // a process holds its folder
	done    = "done"    // it has ended by itself
	stopped = "stopped" // neither: it can be resumed
)

// Run is a run folder as it was last read. It is not changed any more once it was handed out.
type Run struct {
	Summary
	Settings map[string]string `json:"settings" api:"null"` // by key: training.batch_size
	Tables   map[string]*table `json:"tables" api:"null"`   // by the name of the CSV file
	Pictures []string          `json:"pictures" api:"null"`
	Result   json.RawMessage   `json:"result" api:"null"` // how it ended; null while it has not

	text    []byte // of its settings
	policy  fs.FileInfo
	setInfo fs.FileInfo
	resInfo fs.FileInfo
}

// Summary is a run in a list.
type Summary struct {
	Name    string                     `json:"name"`
	State   string                     `json:"state" api:"enum=running|done|stopped"`
	Model   string                     `json:"model"` // the recipe
	Unit    string                     `json:"unit"`  // what it counts: epoch, iteration
	At      int                        `json:"at"`    // how many of them are done
	Of      int                        `json:"of"`    // how many there are; 0: not known
	Updated time.Time                  `json:"updated"`
	Last    map[string]json.RawMessage `json:"last" api:"null"` // the newest row of its history
}

// gained is what a run has more of than before.
type gained struct {
	Summary Summary          `json:"run"`
	Tables  map[string]added `json:"tables,omitempty"`
	Reload  bool             `json:"reload,omitempty"` // read the run again: it has pictures, a result or settings that it had not
}

type added struct {
	From int               `json:"from"` // rows before these
	Rows []json.RawMessage `json:"rows"`
}

// What is read of a folder.
const (
	maxTables   = 16
	maxPictures = 64
	maxSettings = 1 << 20
	maxResult   = 8 << 20
	manyRows    = 500 // that an event carries
)

// isRun tells a run's folder by its files.
func isRun(dir *os.Root) bool {
	for _, name := range []string{run.ConfigName, run.LastName} {
		if info, err := dir.Stat(name); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// readRun reads a folder, of which `before` is what it was; nil: it is new. It returns before
// itself where nothing has changed.
func readRun(dir *os.Root, name string, before *Run, locked func(fs.FileInfo) bool, quiet func(written time.Time) time.Duration) (*Run, *gained, error) {
	r := &Run{Summary: Summary{Name: name}, Tables: map[string]*table{}}
	if before != nil {
		*r = *before
	}
	news := &gained{Tables: map[string]added{}}
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, nil, err
	}
	r.Updated, r.Pictures = time.Time{}, []string{}
	for _, e := range entries {
		ext := strings.ToLower(path.Ext(e.Name()))
		if (ext == ".png" || ext == ".svg") && e.Type().IsRegular() && len(r.Pictures) < maxPictures {
			r.Pictures = append(r.Pictures, e.Name())
		}
	}
	if before == nil || !slices.Equal(r.Pictures, before.Pictures) {
		news.Reload = true
	}
	if text, info, err := changed(dir, run.ConfigName, r.setInfo, maxSettings); err == nil && text != nil {
		r.setInfo, r.text, news.Reload = info, text, true
		r.Settings = flatten(text)
		r.Model, _ = config.RecipeOf(run.ConfigName, text) // what cannot be told is shown without
	}
	text, info, err := changed(dir, run.ResultName, r.resInfo, maxResult)
	switch {
	case err == nil && text != nil && json.Valid(text):
		r.resInfo, r.Result, news.Reload = info, text, true
	case err != nil && r.Result != nil: // a run that was begun again has none
		r.resInfo, r.Result, news.Reload = nil, nil, true
	}
	if r.policy, err = dir.Stat(run.BestName); err != nil || !r.policy.Mode().IsRegular() {
		r.policy = nil
	}
	if err := r.readTables(dir, before, news); err != nil {
		return nil, nil, err
	}
	r.settle(dir, locked, quiet)
	news.Summary = r.Summary
	if before != nil && !news.Reload && len(news.Tables) == 0 && r.State == before.State && r.Updated.Equal(before.Updated) {
		return before, nil, nil
	}
	return r, news, nil
}

// readTables follows the CSV files.
func (r *Run) readTables(dir *os.Root, before *Run, news *gained) error {
	entries, err := fs.ReadDir(dir.FS(), "csv")
	if err != nil {
		r.Tables = map[string]*table{}
		return nil // no row was written yet
	}
	tables := map[string]*table{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".csv")
		if !ok || !e.Type().IsRegular() || len(tables) == maxTables {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it went away
		}
		t := &table{}
		if old := r.Tables[name]; old != nil {
			*t = *old
		}
		had := len(t.Rows)
		grown, fresh, err := t.follow(func() (*os.File, error) { return dir.Open("csv/" + e.Name()) }, info)
		if err != nil {
			continue
		}
		tables[name] = t
		switch {
		case fresh:
			news.Reload = true
		case grown && len(t.Rows)-had > manyRows:
			news.Reload = true
		case grown:
			news.Tables[name] = added{had, t.Rows[had:len(t.Rows):len(t.Rows)]}
		}
	}
	if len(tables) != len(r.Tables) {
		news.Reload = true
	}
	r.Tables = tables
	return nil
}

// settle works out what a list shows.
func (r *Run) settle(dir *os.Root, locked func(fs.FileInfo) bool, quiet func(written time.Time) time.Duration) {
	r.Unit, r.At, r.Of, r.Last = "epoch", 0, 0, nil
	for _, name := range sortedKeys(r.Tables) {
		t := r.Tables[name]
		if t.info != nil && t.info.ModTime().After(r.Updated) {
			r.Updated = t.info.ModTime()
		}
		if !strings.HasPrefix(name, "history") || len(t.Columns) == 0 {
			continue
		}
		r.Unit, r.Last = t.Columns[0], t.figures()
		if at, ok := t.number(0); ok {
			r.At = int(at)
		}
	}
	for _, key := range []string{"training.num_epochs", "train_timesteps", "iterations"} {
		if n, err := fmt.Sscan(r.Settings[key], &r.Of); n == 1 && err == nil {
			break
		}
	}
	for _, info := range []fs.FileInfo{r.setInfo, r.resInfo} {
		if info != nil && info.ModTime().After(r.Updated) {
			r.Updated = info.ModTime()
		}
	}
	if info, err := dir.Stat(run.LastName); err == nil && info.ModTime().After(r.Updated) {
		r.Updated = info.ModTime()
	}
	lock, err := dir.Stat(".lock")
	r.State = stateOf(err == nil && locked(lock), r.Result != nil, quiet(r.Updated))
}

// stateOf is how a run stands whose folder is held by a process or not, has a result or not, and
// was last written to so long ago.
func stateOf(held, ended bool, quiet time.Duration) string {
	switch {
	case held:
		return running
	case ended:
		return done
	case quiet < freshness:
		return running
	}
	return stopped
}

// freshness is how long a folder whose lock cannot be seen counts as running after it was last
// written to.
const freshness = 15 * time.Second

// changed reads a small file where it is another than it was; text is nil where it is not.
func changed(dir *os.Root, name string, was fs.FileInfo, most int64) ([]byte, fs.FileInfo, error) {
	info, err := dir.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, nil, fmt.Errorf("%s is no file of this kind", name)
	}
	if was != nil && os.SameFile(was, info) && was.Size() == info.Size() && was.ModTime().Equal(info.ModTime()) {
		return nil, was, nil
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, info, err
}

// flatten turns settings into keys and values.
func flatten(text []byte) map[string]string {
	var root map[string]any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil
	}
	out := map[string]string{}
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		if m, ok := v.(map[string]any); ok {
			for key, v := range m {
				walk(strings.TrimPrefix(prefix+"."+key, "."), v)
			}
			return
		}
		if s, ok := v.(string); ok {
			out[prefix] = s
			return
		}
		text, err := json.Marshal(v)
		if err != nil {
			text = fmt.Append(nil, v)
		}
		out[prefix] = string(text)
	}
	walk("", root)
	return out
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

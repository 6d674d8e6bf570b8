package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder writes files into a new folder and returns its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The places where an included file is looked for, in order, also for nested includes.
func TestIncludes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  [3]int // n_transit, train_batch_size, train_n_stream
	}{
		{"by its path from the file's folder", map[string]string{
			"a.yaml":       "include: sub/b.yaml\nn_transit: 60\n",
			"sub/b.yaml":   "n_transit: 1\ntrain_batch_size: 7\n",
			"b.yaml":       "train_batch_size: 9\n",
			"sub/c/d.yaml": "",
		}, [3]int{60, 7, 100}},
		{"by its name beside the file", map[string]string{
			"a.yaml":       "include: config/model/ad_base.yaml\n",
			"ad_base.yaml": "train_n_stream: 3\n",
		}, [3]int{80, 512, 3}},
		{"where a folder of its path is a file", map[string]string{
			"a.yaml": "include: config/b.yaml\n",
			"config": "",
			"b.yaml": "train_n_stream: 3\n",
		}, [3]int{80, 512, 3}},
		{"shipped", map[string]string{"a.yaml": "include: x/y/ad_dr_compressed.yaml\n"}, [3]int{328, 1024, 100}},
		{"nested, relative to each", map[string]string{
			"a.yaml":     "include: sub/b.yaml\nn_transit: 60\n",
			"sub/b.yaml": "include: ../c.yaml\ntrain_batch_size: 7\nn_transit: 61\n",
			"c.yaml":     "include: ad_base\nn_transit: 62\ntrain_batch_size: 8\ntrain_n_stream: 9\n",
		}, [3]int{60, 7, 9}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := LoadAD(filepath.Join(folder(t, tc.files), "a.yaml"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := [3]int{c.NTransit, c.TrainBatchSize, c.TrainNStream}; got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// The original program was started in its own folder and wrote its includes from there.
func TestIncludeFromTheWorkingFolder(t *testing.T) {
	dir := folder(t, map[string]string{"config/model/base.yaml": "train_batch_size: 7\n", "config/a.yaml": "model: AD\ninclude: config/model/base.yaml\n"})
	t.Chdir(dir)
	c, err := LoadAD("config/a.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.TrainBatchSize != 7 {
		t.Errorf("train_batch_size %d, want 7", c.TrainBatchSize)
	}
}

func TestBadIncludes(t *testing.T) {
	dir := folder(t, map[string]string{
		"missing.yaml": "model: AD\ninclude: config/ad_bsae.yaml\n",
		"unheard.yaml": "include: nothing_like_it.yaml\n",
		"self.yaml":    "model: AD\ninclude: ./self.yaml\n",
		"one.yaml":     "model: AD\ninclude: two.yaml\n",
		"two.yaml":     "\n\ninclude: sub/../one.yaml\n",
		"folder.yaml":  "model: AD\ninclude: sub\n",
		"sub/x.yaml":   "",
		"empty.yaml":   "model: AD\ninclude: ''\n",
		"null.yaml":    "model: AD\ninclude:\n",
		"list.yaml":    "model: AD\ninclude: [a, b]\n",
		"bad.yaml":     "model: AD\ninclude: worse.yaml\n",
		"worse.yaml":   "lr: 0.1\nbeta_1: fast\n",
		"big.yaml":     "model: AD\ninclude: huge.yaml\n",
		"huge.yaml":    strings.Repeat("#", maxFile+1),
	})
	for name, want := range map[string]string{
		"missing": "/missing.yaml:2: include config/ad_bsae.yaml: no such file here or beside this one, nor a shipped one; did you mean ad_base?",
		"unheard": "/unheard.yaml:1: include nothing_like_it.yaml: no such file here or beside this one, nor a shipped one; shipped: " + strings.Join(shippedFiles(), ", "),
		"self":    "/self.yaml:2: include ./self.yaml: a circle, since /self.yaml leads back here",
		"one":     "/two.yaml:3: include sub/../one.yaml: a circle, since /one.yaml leads back here",
		"folder":  "/folder.yaml:2: include sub: /sub is not a regular file",
		"empty":   "/empty.yaml:2: include has no value",
		"null":    "/null.yaml:2: include has no value",
		"list":    "/list.yaml:2: include must be a path, got [a, b]",
		"bad":     "/worse.yaml:2: unknown key beta_1; did you mean beta1?",
		"big":     "/big.yaml:2: include huge.yaml: over 1048576 bytes; not a settings file",
	} {
		_, err := LoadAny("", filepath.Join(dir, name+".yaml"), nil)
		if err == nil {
			t.Errorf("%s: no error, want %s", name, want)
		} else if got := strings.ReplaceAll(err.Error(), dir, ""); got != want {
			t.Errorf("%s\n got %s\nwant %s", name, got, want)
		}
	}
}

// A cycle of includes through a link is found.
func TestIncludeThroughALink(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": "model: AD\ninclude: again/a.yaml\n"})
	if err := os.Symlink(dir, filepath.Join(dir, "again")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	if _, err := LoadAD(filepath.Join(dir, "a.yaml"), nil); err == nil || !strings.Contains(err.Error(), ": a circle, since ") {
		t.Error(err)
	}
}

func TestRecipeOfAFile(t *testing.T) {
	for text, want := range map[string]*recipe{
		"":                                    gtRecipe,
		"xyzzy: 3\n":                          gtRecipe,
		"\t":                                  gtRecipe,
		"- 1\n":                               gtRecipe,
		"training: {batch_size: 3}\n":         gtRecipe,
		"training.batch_size: 3\n":            gtRecipe,
		"model: {hidden_dim: 8}\n":            gtRecipe,
		"model: AD\n":                         adRecipe,
		"training: {}\ngpu: {}\nmodel: AD\n":  adRecipe,
		"model: unheard_of\n":                 adRecipe,
		"lr: 3\nbatch_size: 4\nn_transit: 3":  adRecipe,
		"include: config/model/ad_base.yaml":  adRecipe,
		"include: ad_dr\nlabel_smoothing: 0":  adRecipe,
		"n_steps: 80\n":                       ppoRecipe,
		"lr: 3\nn_transit: 3\nenv: darkroom":  ppoRecipe,
		"include: config/ppo_darkroom.yaml\n": ppoRecipe,
		"include: [a, b]\nn_stream: 3\n":      ppoRecipe,
	} {
		got, err := (&file{name: "testdata/f.yaml", text: []byte(text)}).recipe()
		if err != nil || got != want {
			t.Errorf("%q is of %v (%v), want %v", text, got, err, want)
		}
	}
	for name, want := range map[string]string{"": RecipeGT, "tiny_1": RecipeGT, "no/such/ad_dr.yaml": RecipeAD, "testdata/original_agent/darkroom.yaml": RecipePPO} {
		if got, err := Recipe(name); err != nil || got != want {
			t.Errorf("Recipe(%q) = %q, %v; want %s", name, got, err, want)
		}
	}
	if _, err := Recipe("ad_drr"); err == nil || err.Error() != "config ad_drr: no such file or shipped name; did you mean ad_dr?" {
		t.Error(err)
	}
}

// Every shipped file is listed once, under the recipe that loads it, and includes shipped files
// only.
func TestNamesAreSortedByRecipe(t *testing.T) {
	want := map[string][]string{
		RecipeGAT: {"gat_default", "gat_quick"},
		RecipeGT:  {"cvrp100", "cvrp20", "cvrp200", "cvrp50", "default", "large", "medium", "pomo10", "pomo100", "pomo20", "quick", "small", "tiny_1", "vrp100", "vrp20", "vrp50"},
		RecipeAD:  {"ad_any", "ad_base", "ad_default", "ad_dr", "ad_dr_compressed", "ad_dr_rewards", "ad_dr_small", "ad_keydoor", "ad_tabular", "ad_xland"},
		RecipePPO: {"darkroom", "keydoor", "ppo_base", "ppo_darkroom", "ppo_default"},
	}
	for _, recipe := range Recipes() {
		if diff := cmp.Diff(want[recipe], Names(recipe)); diff != "" {
			t.Errorf("%s:\n%s", recipe, diff)
		}
		for _, name := range Names(recipe) {
			if _, err := LoadAny(recipe, name, nil); err != nil {
				t.Error(err)
			}
		}
	}
	all := Names("")
	slices.Sort(all)
	if diff := cmp.Diff(shippedFiles(), all); diff != "" {
		t.Errorf("files against names:\n%s", diff)
	}
	if Names("nothing") != nil {
		t.Error("names of an unknown recipe")
	}
}

func TestSettingsOfAnotherRecipe(t *testing.T) {
	for _, tc := range []struct{ recipe, name, want string }{
		{RecipeGT, "ad_dr", "config configs/ad_dr.yaml: these are settings of AD (the in-context agent), not of GT+RL (routing)"},
		{RecipeAD, "quick", "config configs/quick.yaml: these are settings of GT+RL (routing), not of AD (the in-context agent)"},
		{RecipeAD, "darkroom", "config configs/darkroom.yaml: these are settings of PPO (the source learner), not of AD (the in-context agent)"},
		{RecipePPO, "ad_base", "config configs/ad_base.yaml: these are settings of AD (the in-context agent), not of PPO (the source learner)"},
		{RecipePPO, "ppo_drakroom", "config ppo_drakroom: no such file or shipped name; did you mean ppo_darkroom?"},
		{"DQN", "quick", "no settings are called DQN; there are GT+RL, GAT+RL, AD, PPO"},
	} {
		if _, err := LoadAny(tc.recipe, tc.name, nil); err == nil || err.Error() != tc.want {
			t.Errorf("%s as %s\n got %v\nwant %s", tc.name, tc.recipe, err, tc.want)
		}
	}
}

func TestExplainRecipes(t *testing.T) {
	for _, tc := range []struct {
		recipe, key string
		want        []string // recipe, key and default of what comes back
	}{
		{"", "compress_min", []string{"AD compress_min 0"}},
		{"", "source_lr", []string{"PPO source_lr 0.0003"}},
		{"", "include", []string{"GT+RL include none", "AD include none", "PPO include none"}},
		{"ad", "model", []string{`AD model "AD"`}},
		{RecipePPO, "horizon", []string{"PPO horizon 20"}},
	} {
		entries, err := Explain(tc.recipe, tc.key)
		var got []string
		for _, e := range entries {
			got = append(got, e.Recipe+" "+e.Key+" "+e.Default)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("Explain(%q, %q): %v\n%s", tc.recipe, tc.key, err, diff)
		}
	}
	for _, tc := range [][3]string{
		{RecipeAD, "horizon", "unknown key horizon; `haul config explain` lists the known ones"},
		{"", "compres_min", "unknown key compres_min; did you mean compress_min?"},
		{"DQN", "lr", "no settings are called DQN; there are GT+RL, GAT+RL, AD, PPO"},
	} {
		if _, err := Explain(tc[0], tc[1]); err == nil || err.Error() != tc[2] {
			t.Errorf("Explain(%q, %q): %v, want %s", tc[0], tc[1], err, tc[2])
		}
	}
}

// Before, a word that is a whole key of the learners hid the key of routing that ends in it.
func TestExplainFindsTheLastWord(t *testing.T) {
	for key, want := range map[string][]string{"batch_size": {"training.batch_size", "batch_size"}, "hidden_dim": {"model.hidden_dim", "model.hidden_dim"}, "update.enabled": {"baseline.update.enabled"}} {
		entries, err := Explain("", key)
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Key)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

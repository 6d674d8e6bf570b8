package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Before, a file that an editor or a failed command had left empty ran the defaults silently.
func TestAFileWithoutSettingsIsRefused(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, text := range []string{"", "\n", "\ufeff", "# model: AD\n# all of it\n", "---\n", "---\n# nothing\n...\n", "null\n", "~",
		"training:\n", "training: null\nmodel: ~\n", "training:\n  # batch_size: 64\nmodel:\n"} {
		path := put("empty.yaml", text)
		for recipe, words := range map[string]string{
			"": "--config default", RecipeGT: "--config default", RecipeAD: "--config ad_default", RecipePPO: "--config ppo_default",
		} {
			_, err := LoadAny(recipe, path, []string{})
			if err == nil || !strings.HasPrefix(err.Error(), "config "+path+": no settings in it") || !strings.Contains(err.Error(), words) {
				t.Errorf("%q as %q: %v", text, recipe, err)
			}
		}
		if _, err := LoadAD(put("top.yaml", "model: AD\ninclude: empty.yaml\n"), nil); err == nil || !strings.Contains(err.Error(), "top.yaml:2: include empty.yaml: no settings in it") {
			t.Errorf("%q included: %v", text, err)
		}
	}
	// The section `model` without keys does not identify the agent, which has a key `model`.
	for text, want := range map[string]int{"training:\nmodel:\n  hidden_dim: 64\n": 64, "problem:\n  num_customers: 5\nmodel:\n  # hidden_dim: 64\n": 256} {
		if c, err := LoadAny("", put("section.yaml", text), nil); err != nil || c.(*Config).Model.HiddenDim != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{"trainin:\n": "1: unknown key trainin; did you mean training?",
		"training:\n  bach_size:\n": "2: unknown key training.bach_size; did you mean training.batch_size?"} {
		if _, err := LoadAny("", put("unknown.yaml", text), nil); err == nil || !strings.HasSuffix(err.Error(), "unknown.yaml:"+want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	// An explicitly empty file loads the defaults.
	want, err := LoadAny("", "default", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{put("braces.yaml", "{}\n"), put("section.yaml", "training: {}\n"), os.DevNull} {
		got, err := LoadAny("", path, nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if diff := cmp.Diff(want.Named(""), got.Named("")); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatShortLeavesOutIsListed: docs/testing.md names every function that asks for -short.
func TestWhatShortLeavesOutIsListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## What -short leaves out")
	section, _, _ = strings.Cut(section, "\n## ")
	function := regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(\w+)\(`)
	asks := "testing" + ".Short()"
	found := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for at := strings.Index(string(text), asks); at >= 0; {
			names := function.FindAllSubmatch(text[:at], -1)
			found++
			if name := string(names[len(names)-1][1]); !strings.Contains(section, "`"+name+"`") {
				t.Errorf("docs/testing.md does not list %s of %s among what -short shortens", name, path)
			}
			next := strings.Index(string(text[at+1:]), asks)
			if next < 0 {
				break
			}
			at += 1 + next
		}
		return nil
	})
	if err != nil || found < 20 {
		t.Errorf("%d are found, %v", found, err)
	}
}

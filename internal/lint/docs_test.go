package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// pages are the repository's Markdown files, relative to its root.
func pages(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, file)
		}
		if strings.HasSuffix(file, ".md") {
			rel, err := filepath.Rel(root, file)
			out = append(out, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil || len(out) < 10 {
		t.Fatalf("found %v, %v", out, err)
	}
	return out
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestArchitectureHasEveryPackage: whoever reads the folder list finds each one's job on one page.
func TestArchitectureHasEveryPackage(t *testing.T) {
	_, packages, ok := strings.Cut(read(t, "docs/ARCHITECTURE.md"), "\n## Packages\n")
	packages, _, ends := strings.Cut(packages, "\n## ")
	if !ok || !ends {
		t.Fatal("docs/ARCHITECTURE.md has no section of packages before another")
	}
	for _, pkg := range house {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(pkg))); err != nil {
			continue // a place that is kept for it
		}
		if !strings.Contains(packages, "`"+pkg+"`") {
			t.Errorf("docs/ARCHITECTURE.md does not say what %s is for", pkg)
		}
	}
}

// A picture that no page shows is seen by nobody, and grows old unseen.
func TestPicturesAreShown(t *testing.T) {
	folder := filepath.Join(root, "docs", "pictures")
	files, err := os.ReadDir(folder)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	shown := map[string]bool{}
	for _, page := range pages(t) {
		for _, m := range pictureLink.FindAllStringSubmatch(read(t, page), -1) {
			shown[filepath.Join(root, filepath.Dir(page), filepath.FromSlash(m[1]))] = true
		}
	}
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); (ext == ".svg" || ext == ".png") && !shown[filepath.Join(folder, f.Name())] {
			t.Errorf("docs/pictures/%s is shown on no page: show it or remove it", f.Name())
		}
	}
}

var pictureLink = regexp.MustCompile(`!\[[^\]]*\]\(([^)]+)\)`)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	// A path in code: of a folder of the repository, with a file's ending where it names a file, and
	// without a place-holder.
	path = regexp.MustCompile("`((?:internal|cmd|configs|docs|scripts)/[A-Za-z0-9_./-]+)`")
	// A link whose words end with a number, and its target.
	numbered = regexp.MustCompile(`\b([0-9]+)\]\(([^)\s]+)\)`)
)

// anchors are the addresses that Markdown gives a page's headings.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.ReplaceAll(strings.ToLower(dropped.ReplaceAllString(m[1], "")), " ", "-")
		out[name] = true
	}
	return out
}

// missing says where a link or a path of a page leads nowhere, or to a decision of another number.
func missing(page, text string, exists func(path string) bool, anchorsOf func(path string) map[string]bool) (out []string) {
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		target := page
		if file != "" {
			target = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
		}
		switch {
		case !exists(target):
			out = append(out, fmt.Sprintf("%s links to %s, which does not exist", page, m[1]))
		case anchor != "" && !anchorsOf(target)[anchor]:
			out = append(out, fmt.Sprintf("%s links to %s, which has no such heading", page, m[1]))
		}
	}
	for _, m := range numbered.FindAllStringSubmatch(text, -1) {
		target := filepath.ToSlash(filepath.Join(filepath.Dir(page), m[2]))
		if number, _, _ := strings.Cut(filepath.Base(target), "-"); strings.HasPrefix(target, "docs/decisions/") && fmt.Sprintf("%04s", m[1]) != number {
			out = append(out, fmt.Sprintf("%s calls %s number %s", page, target, m[1]))
		}
	}
	for _, m := range path.FindAllStringSubmatch(text, -1) {
		if !exists(m[1]) {
			out = append(out, fmt.Sprintf("%s names %s, which does not exist", page, m[1]))
		}
	}
	return out
}

func TestPagesNameWhatExists(t *testing.T) {
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path)))
		return err == nil
	}
	anchorsOf := func(path string) map[string]bool { return anchors(read(t, path)) }
	for _, page := range pages(t) {
		for _, m := range missing(page, read(t, page), exists, anchorsOf) {
			t.Error(m)
		}
	}
}

var (
	testName = regexp.MustCompile("`[^`]*\\b((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\(`)
)

// A page that says how something is tested names a test that is there.
func TestPagesNameTestsThatExist(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, file)
		}
		if strings.HasSuffix(file, "_test.go") {
			text, err := os.ReadFile(file)
			for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
				there[m[1]] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(read(t, page), -1) {
			if named++; !there[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	if named == 0 || len(there) < 100 {
		t.Errorf("%d tests named, %d found: the search is broken", named, len(there))
	}
}

func TestWhatIsMissingIsFound(t *testing.T) {
	exists := func(path string) bool {
		return path == "docs/a.md" || path == "internal/run" || strings.HasPrefix(path, "docs/decisions/")
	}
	anchorsOf := func(string) map[string]bool { return anchors("# One, two: `three`\n## Four\n") }
	text := "[a](a.md) [b](b.md) [c](a.md#one-two-three) [d](#four) [e](#five) [f](https://x.example/y) `internal/run` `internal/runs` [decision 7](decisions/0007-b.md) [8](decisions/0009-c.md)"
	got := strings.Join(missing("docs/a.md", text, exists, anchorsOf), "\n")
	want := "docs/a.md links to b.md, which does not exist\n" +
		"docs/a.md links to #five, which has no such heading\n" +
		"docs/a.md calls docs/decisions/0009-c.md number 8\n" +
		"docs/a.md names internal/runs, which does not exist"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

package lint

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fullFolder is how many files of code a folder holds at most, and how many of tests below
// internal/kernel and internal/doctor.
const fullFolder = 35

// fuller lists the folders that hold more files of code, with their number at most.
var fuller = map[string]int{
	"internal/search": 47,
	// falls when the followers of recorded routes are one file
	"internal/kernel/cuda/routing/src": 36,
}

// codeFiles counts what a folder holds: files of code, and tests in Go.
type codeFiles struct{ code, tests int }

// crowded lists the folders that hold more files than they may, and the exceptions that none needs.
func crowded(folders map[string]codeFiles, fuller map[string]int) (out []string) {
	for folder, n := range folders {
		most, excepted := fullFolder, false
		if m, ok := fuller[folder]; ok {
			most, excepted = m, true
		}
		if n.code > most {
			out = append(out, fmt.Sprintf("%s holds %d files of code, %d at most: split it by families", folder, n.code, most))
		}
		if excepted && n.code <= fullFolder {
			out = append(out, fmt.Sprintf("%s holds %d files of code and needs no exception", folder, n.code))
		}
		if n.tests > fullFolder && (strings.HasPrefix(folder, "internal/kernel/") || strings.HasPrefix(folder+"/", "internal/doctor/")) {
			out = append(out, fmt.Sprintf("%s holds %d tests, %d at most: move them beside what they test", folder, n.tests, fullFolder))
		}
	}
	for folder := range fuller {
		if _, ok := folders[folder]; !ok {
			out = append(out, folder+" is excepted and not there")
		}
	}
	slices.Sort(out)
	return out
}

// TestFoldersAreSmall: no folder holds more files than a reader takes in.
func TestFoldersAreSmall(t *testing.T) {
	folders := map[string]codeFiles{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, file)
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		n := folders[dir]
		switch ext := filepath.Ext(file); {
		case strings.HasSuffix(file, "_test.go"):
			n.tests++
		case slices.Contains([]string{".go", ".cu", ".cuh", ".py", ".js"}, ext) && dir != "scripts":
			n.code++
		}
		folders[dir] = n
		return nil
	})
	if err != nil || len(folders) < 50 {
		t.Fatalf("%d folders: %v", len(folders), err)
	}
	for _, c := range crowded(folders, fuller) {
		t.Error(c)
	}
}

// TestCrowdedFoldersAreFound: one file below the limit, at it and above it, in folders with and
// without an exception.
func TestCrowdedFoldersAreFound(t *testing.T) {
	got := crowded(map[string]codeFiles{
		"a": {34, 99}, "b": {35, 0}, "c": {36, 0}, "internal/kernel/x": {1, 35}, "internal/kernel/y": {1, 36}, "internal/doctor": {1, 36},
		"old": {40, 0}, "over": {41, 0}, "done": {35, 0},
	}, map[string]int{"old": 40, "over": 40, "done": 40, "gone": 40})
	want := []string{
		"c holds 36 files of code, 35 at most: split it by families",
		"done holds 35 files of code and needs no exception",
		"gone is excepted and not there",
		"internal/doctor holds 36 tests, 35 at most: move them beside what they test",
		"internal/kernel/y holds 36 tests, 35 at most: move them beside what they test",
		"over holds 41 files of code, 40 at most: split it by families",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"haul/problems"
)

// ProblemNames lists the built-in problems.
func ProblemNames() string {
	var out []string
	for _, p := range problems.All() {
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
}

// ReadProblem finds a problem's file by folder, file or name. It returns the path that messages
// name, and the text.
func ReadProblem(arg string) (path string, text []byte, err error) {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(arg, `/\.`):
		p, ok := problems.Find(arg)
		if !ok {
			return "", nil, fmt.Errorf("no folder %s, and no built-in problem of that name: use one of %s, or write a file by haul problem new %s", arg, ProblemNames(), arg)
		}
		return arg + ".go", p.Source(), nil
	case err != nil:
		return "", nil, err
	case info.IsDir():
		if path, err = fileIn(arg); err != nil {
			return "", nil, err
		}
	default:
		path = arg
	}
	text, err = os.ReadFile(path)
	return path, text, err
}

// fileIn returns the one Go file of a folder that is no test.
func fileIn(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	found = slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s has no Go file: write one by haul problem new", dir)
	case 1:
		return found[0], nil
	}
	for i, f := range found {
		found[i] = filepath.Base(f)
	}
	return "", fmt.Errorf("%s has %d Go files (%s): a problem is one; name it", dir, len(found), strings.Join(found, ", "))
}

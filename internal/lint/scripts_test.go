package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptsHelpWithoutPackages: every Python script says what it does on a bare Python, in lines
// that fit, and one that cannot run for want of a package says so in a line.
func TestScriptsHelpWithoutPackages(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	scripts := filepath.Join("..", "..", "scripts")
	entries, err := os.ReadDir(scripts)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, e := range entries {
		path := filepath.Join(scripts, e.Name())
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(e.Name(), ".py") && !bytes.HasPrefix(text, []byte("#!/usr/bin/env python3")) {
			continue // a folder, or a script of the shell
		}
		tried++
		var out bytes.Buffer
		// Without the packages of this machine (-S), and without leaving compiled files behind (-B).
		help := exec.Command(python, "-S", "-E", "-B", path, "--help")
		help.Stdout, help.Stderr = &out, &out
		if err := help.Run(); strings.Contains(out.String(), "Traceback") {
			t.Errorf("%s --help: %v\n%s", e.Name(), err, out.String())
		}
		if strings.Contains(string(text), "import needs") {
			helpFits(t, e.Name(), out.String())
		}
	}
	if tried < 10 {
		t.Errorf("%d scripts were found: the search is broken", tried)
	}
	var out bytes.Buffer
	bare := exec.Command(python, "-S", "-E", "-B", filepath.Join(scripts, "race.py"))
	bare.Stdout, bare.Stderr = &out, &out
	if err := bare.Run(); err == nil || strings.Count(out.String(), "\n") != 1 ||
		!strings.Contains(out.String(), "torch, numpy are not installed") {
		t.Errorf("race.py without PyTorch: %v\n%s", err, out.String())
	}
}

// TestShellScriptsHelp: a script of the shell that is asked for help prints it, in lines that fit,
// and begins nothing.
func TestShellScriptsHelp(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	// a copy: who begins its work in spite of all has nothing to spoil
	scripts := filepath.Join(t.TempDir(), "scripts")
	if err := os.CopyFS(scripts, os.DirFS(filepath.Join("..", "..", "scripts"))); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(scripts)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, e := range entries {
		path := filepath.Join(scripts, e.Name())
		text, err := os.ReadFile(path)
		shell := bytes.HasPrefix(text, []byte("#!/usr/bin/env bash")) || bytes.HasPrefix(text, []byte("#!/bin/sh"))
		if err != nil || !shell || e.Name() == "mutate" { // whose help is a Go program's
			continue
		}
		tried++
		help := exec.Command("bash", path, "--help")
		help.Env = []string{"PATH=/usr/bin:/bin"} // no Go, no clang: who begins its work fails
		out, err := help.CombinedOutput()
		if err != nil || len(out) < 80 {
			t.Errorf("%s --help: %v\n%s", e.Name(), err, out)
		}
		helpFits(t, e.Name(), string(out))
	}
	if tried < 6 {
		t.Errorf("%d scripts were found: the search is broken", tried)
	}
}

// helpFits: no line of a script's help is longer than 100 columns.
func helpFits(t *testing.T, name, help string) {
	t.Helper()
	for line := range strings.Lines(help) {
		if line = strings.TrimRight(line, "\n"); len([]rune(line)) > 100 {
			t.Errorf("%s --help: a line of %d: %s", name, len([]rune(line)), line)
		}
	}
}

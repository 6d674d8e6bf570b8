package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// emulated are the tests that judge kernels of arm64 where the machine is another: those of rows,
// products and tiles, beside guard pages. The rest of the package takes too long under emulation.
const emulated = "^(TestRows|TestProduct(Small|Guarded|Bits)|TestTiles(Small|Guarded|Bits)|TestPack|TestLog|TestExp)"

// generator is the program of _generate that a fault is in.
func (f *fault) generator() (name string, ok bool) {
	rest, ok := strings.CutPrefix(f.File, filepath.Join(f.Package, "_generate")+"/")
	name, _, found := strings.Cut(rest, "/")
	return name, ok && found
}

// testGenerated generates the assembly from the faulty source, tests the package with it, and puts
// the assembly back. NEON is tested under Debian's emulator (qemu-user-static, libc6-arm64-cross).
// err is of a generator that no longer runs.
func (f *fault) testGenerated(ctx context.Context, dir, generator string, timeout time.Duration) (out string, failed, err error) {
	arch := "amd64"
	var env, flags []string
	if generator == "neon" {
		arch = "arm64"
		env = []string{"GOARCH=arm64", "CGO_ENABLED=0", "QEMU_LD_PREFIX=/usr/aarch64-linux-gnu"}
		flags = []string{"-short", "-exec", "qemu-aarch64-static -cpu max", "-run", emulated}
	}
	at := filepath.Join(dir, f.Package)
	assembly, stubs := generator+"_"+arch+".s", generator+"_stubs_"+arch+".go"
	for _, name := range []string{assembly, stubs} {
		path := filepath.Join(at, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return "", nil, err
		}
		defer os.WriteFile(path, text, 0o644)
	}
	run := exec.CommandContext(ctx, "go", "run", "-C", "_generate", "./"+generator, "-out", "../"+assembly, "-stubs", "../"+stubs, "-pkg", filepath.Base(f.Package))
	run.Dir = at
	if text, err := run.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("the generator does not run: %s", compilerSays(string(text)))
	}
	out, failed = testIn(ctx, env, dir, f.Package, timeout, flags...)
	return out, failed, nil
}

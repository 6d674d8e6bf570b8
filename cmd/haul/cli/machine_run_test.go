package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/clitest/inprocess"
)

// A library is judged by what it does: results that are off, calls that take long and symbols that
// are not there each leave the kernels in use, with one word for a reader and for a program.
func TestDevicesJudgeALibrary(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to make a library with")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	// sgemm_ of both operands straight or turned, by columns; each fault is one line of it.
	const product = `#include <unistd.h>
void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const float *alpha,
            const float *a, const int *lda, const float *b, const int *ldb, const float *beta, float *c, const int *ldc) {
  PAUSE;
  for (long j = 0; j < *n; j++)
    for (long i = 0; i < *m; i++) {
      float s = 0;
      for (long l = 0; l < *k; l++)
        s += (*ta == 'N' ? a[l * *lda + i] : a[i * *lda + l]) * (*tb == 'N' ? b[j * *ldb + l] : b[l * *ldb + j]);
      float *at = &c[j * *ldc + i];
      *at = FAULT * *alpha * s + (*beta == 0 ? 0 : *beta * *at);
    }
}
`
	for _, c := range []struct {
		name, source string
		flags        []string
		want         string
	}{
		{"wrong", product, []string{"-DPAUSE=", "-DFAULT=1.01f"}, "wrong"},
		{"slow", product, []string{"-DPAUSE=usleep(2000)", "-DFAULT=1"}, "slow"},
		{"missing", "void dgemm_(void) {}\n", nil, "missing"},
	} {
		path := filepath.Join(t.TempDir(), "lib"+c.name+".so")
		build := exec.Command(compiler, append(c.flags, "-O2", "-shared", "-fPIC", "-x", "c", "-o", path, "-")...)
		build.Stdin, build.Stderr = strings.NewReader(c.source), os.Stderr
		if err := build.Run(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		t.Setenv("HAUL_BLAS", path)
		v := inprocess.Object(t, "devices", "--json")["cpu"].(map[string]any)
		library, _ := v["library"].(map[string]any)
		if library["verdict"] != c.want || library["beside"] == "" || library["path"] != path {
			t.Errorf("%s: %v", c.name, library)
		}
		for _, kernel := range v["kernels"].([]any) {
			if kernel == "blas" {
				t.Errorf("%s: products are to use it: %v", c.name, v["kernels"])
			}
		}
		if r := inprocess.Run(t, "devices"); !strings.Contains(r.Stdout, "blas") || !strings.Contains(r.Stdout, c.want+": ") {
			t.Errorf("%s: %q", c.name, r.Stdout)
		}
	}
	t.Setenv("HAUL_BLAS", "off")
	if r := inprocess.Run(t, "devices"); !strings.Contains(r.Stdout, "off: ") {
		t.Errorf("off: %q", r.Stdout)
	}
}

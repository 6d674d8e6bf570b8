//go:build !linux

package train

import "os/exec"

func dieWithParent(*exec.Cmd) {}

package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent leaves no rank behind when whoever started it is killed.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }

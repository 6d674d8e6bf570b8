package train

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends a rank when the process that started it is killed.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }

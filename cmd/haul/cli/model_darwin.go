package cli

import "golang.org/x/sys/unix"

// systemModel is the processor's name by the system; "": it does not tell.
func systemModel() string {
	name, _ := unix.Sysctl("machdep.cpu.brand_string")
	return name
}

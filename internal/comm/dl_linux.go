package comm

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// dlopen opens the first of several libraries that is there. It stays on one thread until the
// loader's words for a failure are read.
func dlopen(flags int, names ...string) (handle uintptr, name string, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var why []string
	for _, n := range names {
		if handle, err = purego.Dlopen(n, purego.RTLD_NOW|flags); err == nil {
			return handle, n, nil
		}
		why = append(why, strings.TrimSpace(err.Error()))
	}
	return 0, "", fmt.Errorf("%s", strings.Join(why, "; "))
}

// signals are the handlers of all signals, as the kernel has them.
type signals [65][4]uint64

// A library that is opened may put handlers of its own over Go's, which then end the process at the
// next signal: those that changed are put back.
func readSignals() (s signals) {
	for n := 1; n < len(s); n++ {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&s[n])), 8, 0, 0)
	}
	return s
}

// restore puts back what differs and says how many did.
func (s *signals) restore() (changed int) {
	now := readSignals()
	for n := 1; n < len(s); n++ {
		if now[n] != s[n] {
			syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&s[n])), 0, 8, 0, 0)
			changed++
		}
	}
	return changed
}

// mapped is memory for n floats that is never given back: libraries keep notes about the memory
// they have sent from, and Go's runtime does not tell them when it returns some to the system.
func mapped(n int) []float32 {
	if n == 0 {
		return nil
	}
	b, err := syscall.Mmap(-1, 0, 4*n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]float32, n)
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n)
}

var libcExit uintptr // set once MPI is open

// Exit ends the process. Where MPI was opened it leaves through C's exit, which runs what the
// library has registered; without it some launchers call a good run killed.
func Exit(code int) {
	if libcExit != 0 {
		os.Stdout.Sync()
		purego.SyscallN(libcExit, uintptr(code))
	}
	os.Exit(code)
}

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

// dlopen opens the first library of names that exists. The goroutine stays on one thread, because
// dlerror describes the last failure of the calling thread.
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

// signals holds the kernel's sigaction structures of all signals.
type signals [65][4]uint64

// readSignals returns the present signal handlers. A library may install handlers over those of Go
// when it is opened, and the next signal would then end the process: restore undoes that.
func readSignals() (s signals) {
	for n := 1; n < len(s); n++ {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&s[n])), 8, 0, 0)
	}
	return s
}

// restore reinstalls the handlers that differ and returns their number.
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

// mapped returns memory for n floats that is never freed. Libraries keep registrations of memory
// that they have sent from, which Go's runtime would not cancel when it frees memory.
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

var libcExit uintptr // C's exit; 0 until MPI is open

// Exit ends the process. After MPI was opened it calls C's exit, which runs the library's exit
// handlers: otherwise some launchers report a run that succeeded as killed.
func Exit(code int) {
	if libcExit != 0 {
		os.Stdout.Sync()
		purego.SyscallN(libcExit, uintptr(code))
	}
	os.Exit(code)
}

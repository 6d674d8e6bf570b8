package cu

import (
	"fmt"
	"unsafe"
)

// Result is the driver's CUresult; 0 is success.
type Result int32

// Error is a failed driver call: the call, its code, and CUDA's name and description of the code.
type Error struct {
	Call   string
	Code   Result
	Name   string // for example CUDA_ERROR_NO_DEVICE
	Detail string
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: CUDA error %d", e.Call, e.Code)
	}
	if e.Detail == "" {
		return fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	}
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, e.Code, e.Detail)
}

// check converts a result to nil or an *Error. It works before cuInit has succeeded.
func (d *Driver) check(call string, code Result) error {
	if code == 0 {
		return nil
	}
	e := &Error{Call: call, Code: code}
	var text uintptr
	if d.cuGetErrorName(code, &text) == 0 {
		e.Name = cString(text)
	}
	text = 0
	if d.cuGetErrorString(code, &text) == 0 {
		e.Detail = cString(text)
	}
	return e
}

// cString copies a NUL-terminated string of the driver.
func cString(address uintptr) string {
	if address == 0 {
		return ""
	}
	// The address is in the driver's static storage, not in Go's heap. Reading it through a pointer
	// to the variable satisfies vet.
	p := *(**byte)(unsafe.Pointer(&address))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

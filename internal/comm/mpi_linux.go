package comm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// abi holds the values of MPI's handles, which differ between libraries.
type abi struct {
	name          string
	world, byte   uintptr
	errorsReturn  uintptr
	threadFunnels uintptr
	float, sum    uintptr
	inPlace       uintptr
}

// mpi is an open MPI library. All calls run on one locked thread.
type mpi struct {
	abi
	lib     uintptr
	file    string
	version string
	rank, n int
	work    chan func() error
	done    chan error

	alltoallvFn, allgathervFn, allgatherFn, bcastFn, errorString uintptr
	args                                                         [9]uintptr
	// arguments of a scatter, by rank: counts and offsets
	sends, to, recvs, from []int32
}

// candidates returns the file names of MPI libraries to try, for the launcher's family of MPI.
func candidates(p Place) []string {
	open := []string{"libmpi.so.40", "libmpi.so.80"}
	mpich := []string{"libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"}
	if path := os.Getenv("HAUL_MPI"); path != "" {
		return []string{path}
	}
	if p.MPI == OpenMPI {
		return open
	}
	return mpich // also for launchers without MPI, for which rank 0 runs a PMI server
}

// openMPI opens and initializes the MPI library of the launcher's family.
func openMPI(p Place) (*mpi, error) {
	names := candidates(p)
	before := readSignals()
	lib, file, err := dlopen(purego.RTLD_GLOBAL, names...)
	if err != nil {
		packages := "Debian: libmpich12, or mpich with its mpirun"
		if p.MPI == OpenMPI {
			packages = "Debian: libopenmpi3"
		}
		return nil, fmt.Errorf("no MPI library for ranks on the CPU: none of %s opens (%s; HAUL_MPI=path names another)", strings.Join(names, ", "), packages)
	}
	m := &mpi{lib: lib, file: file, work: make(chan func() error), done: make(chan error)}
	if err := m.handles(); err != nil {
		return nil, err
	}
	libcExit, _ = purego.Dlsym(purego.RTLD_DEFAULT, "exit")
	go m.loop()
	err = m.do(m.start)
	before.restore()
	return m, err
}

// handles detects the library's family and looks up its functions.
func (m *mpi) handles() error {
	at := func(name string) uintptr {
		p, _ := purego.Dlsym(m.lib, name)
		return p
	}
	if at("MPI_Init_thread") == 0 {
		return fmt.Errorf("%s is no MPI library: it has no MPI_Init_thread", m.file)
	}
	switch world := at("ompi_mpi_comm_world"); {
	case world != 0:
		m.abi = abi{OpenMPI, world, at("ompi_mpi_byte"), at("ompi_mpi_errors_return"), 1, at("ompi_mpi_float"), at("ompi_mpi_op_sum"), 1}
	case strings.Contains(m.file, "libmpi_abi"):
		m.abi = abi{"the MPI ABI", 0x101, 0x247, 0x143, 1024, 0x210, 0x21, 1}
	default:
		m.abi = abi{MPICH, 0x44000000, 0x4c00010d, 0x54000001, 1, 0x4c00040a, 0x58000003, ^uintptr(0)}
	}
	for _, f := range []struct {
		into *uintptr
		name string
	}{{&m.alltoallvFn, "MPI_Alltoallv"}, {&m.allgathervFn, "MPI_Allgatherv"}, {&m.allgatherFn, "MPI_Allgather"}, {&m.bcastFn, "MPI_Bcast"}, {&m.errorString, "MPI_Error_string"}} {
		if *f.into = at(f.name); *f.into == 0 {
			return fmt.Errorf("%s has no %s", m.file, f.name)
		}
	}
	return nil
}

func (m *mpi) symbol(name string) uintptr {
	p, _ := purego.Dlsym(m.lib, name)
	return p
}

// start initializes MPI. It runs on the library's thread.
func (m *mpi) start() error {
	buf := make([]byte, 8193)
	var n, flag, provided int32
	purego.SyscallN(m.symbol("MPI_Get_library_version"), uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&n)))
	m.version = firstLine(string(buf[:max(0, min(int(n), len(buf)))]))
	purego.SyscallN(m.symbol("MPI_Initialized"), uintptr(unsafe.Pointer(&flag)))
	if flag != 0 {
		return fmt.Errorf("MPI was started already in this process (%s)", m.file)
	}
	r, _, _ := purego.SyscallN(m.symbol("MPI_Init_thread"), 0, 0, m.threadFunnels, uintptr(unsafe.Pointer(&provided)))
	if err := m.check("MPI_Init_thread", r); err != nil {
		return err
	}
	purego.SyscallN(m.symbol("MPI_Comm_set_errhandler"), m.world, m.errorsReturn)
	var rank, size int32
	purego.SyscallN(m.symbol("MPI_Comm_rank"), m.world, uintptr(unsafe.Pointer(&rank)))
	purego.SyscallN(m.symbol("MPI_Comm_size"), m.world, uintptr(unsafe.Pointer(&size)))
	m.rank, m.n = int(rank), int(size)
	m.sends, m.to, m.recvs, m.from = make([]int32, size), make([]int32, size), make([]int32, size), make([]int32, size)
	return nil
}

// firstLine shortens the library's version text to its name and version.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimRight(s, "\x00"), "\n")
	s, _, _ = strings.Cut(s, ",")
	s = strings.ReplaceAll(strings.TrimSpace(s), "\t", " ")
	s = strings.Replace(s, "MPICH Version:", "MPICH", 1)
	return strings.Join(strings.Fields(strings.TrimPrefix(s, "Open MPI v")), " ")
}

func (m *mpi) name() string {
	if strings.HasPrefix(m.version, m.abi.name) {
		return m.version
	}
	return m.abi.name + " " + m.version
}
func (m *mpi) rankAndSize() (int, int) { return m.rank, m.n }

func (m *mpi) loop() {
	runtime.LockOSThread()
	for f := range m.work {
		m.done <- f()
	}
}

func (m *mpi) do(f func() error) error {
	m.work <- f
	return <-m.done
}

// collective calls fn with the first n of m.args. They are stored in m, so that a call allocates
// nothing.
func (m *mpi) collective(what string, fn uintptr, n int) error {
	r, _, _ := purego.SyscallN(fn, m.args[:n]...)
	return m.check(what, r)
}

func (m *mpi) scatter(recv, send unsafe.Pointer, cuts []int32) error {
	own := cuts[m.rank+1] - cuts[m.rank]
	for r := range m.n {
		m.sends[r], m.to[r] = cuts[r+1]-cuts[r], cuts[r]
		m.recvs[r], m.from[r] = own, int32(r)*own
	}
	m.sends[m.rank], m.recvs[m.rank] = 0, 0
	m.args = [9]uintptr{uintptr(send), pointer(m.sends), pointer(m.to), m.byte, uintptr(recv), pointer(m.recvs), pointer(m.from), m.byte, m.world}
	err := m.collective("MPI_Alltoallv", m.alltoallvFn, 9)
	runtime.KeepAlive(recv)
	runtime.KeepAlive(send)
	return err
}

func (m *mpi) complete(p unsafe.Pointer, cuts []int32) error {
	for r := range m.n {
		m.recvs[r], m.from[r] = cuts[r+1]-cuts[r], cuts[r]
	}
	m.args = [9]uintptr{m.inPlace, 0, m.byte, uintptr(p), pointer(m.recvs), pointer(m.from), m.byte, m.world}
	err := m.collective("MPI_Allgatherv", m.allgathervFn, 8)
	runtime.KeepAlive(p)
	return err
}

// pointer returns the address of v, which must be a slice of mpi: it must outlive the call.
func pointer(v []int32) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(v))) }

func (m *mpi) allgather(recv, send unsafe.Pointer, block int) error {
	m.args = [9]uintptr{uintptr(send), uintptr(block), m.byte, uintptr(recv), uintptr(block), m.byte, m.world}
	err := m.collective("MPI_Allgather", m.allgatherFn, 7)
	runtime.KeepAlive(recv)
	runtime.KeepAlive(send)
	return err
}

// allreduce sums floats in place.
func (m *mpi) allreduce(p unsafe.Pointer, n int) error {
	m.args = [9]uintptr{m.inPlace, uintptr(p), uintptr(n), m.float, m.sum, m.world}
	err := m.collective("MPI_Allreduce", m.symbol("MPI_Allreduce"), 6)
	runtime.KeepAlive(p)
	return err
}

func (m *mpi) broadcast(p unsafe.Pointer, n int) error {
	m.args = [9]uintptr{uintptr(p), uintptr(n), m.byte, 0, m.world}
	err := m.collective("MPI_Bcast", m.bcastFn, 5)
	runtime.KeepAlive(p)
	return err
}

// check returns an error with the library's message if r is not 0.
func (m *mpi) check(call string, r uintptr) error {
	if int32(r) == 0 {
		return nil
	}
	buf := make([]byte, 8193)
	var n int32
	purego.SyscallN(m.errorString, r, uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&n)))
	return fmt.Errorf("%s: %s", call, strings.Join(strings.Fields(string(buf[:max(0, min(int(n), len(buf)))])), " "))
}

func (m *mpi) close() error {
	return m.do(func() error {
		r, _, _ := purego.SyscallN(m.symbol("MPI_Finalize"))
		return errors.Join(m.check("MPI_Finalize", r))
	})
}

// pmiEnvironment sets the variables from which MPI_Init of MPICH learns its rank and the open
// connection to its PMI server.
func pmiEnvironment(fd int, p Place) {
	for k, v := range map[string]int{"PMI_FD": fd, "PMI_RANK": p.Rank, "PMI_SIZE": p.Size} {
		os.Setenv(k, fmt.Sprint(v))
	}
}

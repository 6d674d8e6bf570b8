package comm

import (
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"strings"
)

// Place is the rank of a process, as the launcher's variables give it.
type Place struct {
	Launcher  string // "mpirun", "torchrun", "srun", "haul"
	MPI       string // the launcher's family of MPI: OpenMPI, MPICH, or "" for none
	Rank      int
	Size      int
	LocalRank int
	LocalSize int
	Address   string // host:port of the rendezvous at rank 0; "": rank 0 broadcasts it over MPI
	Token     string // secret of the run that ranks prove to each other; "": rank 0 chooses one
}

// TokenVariable is the environment variable of Place.Token, for ranks without an MPI launcher.
const TokenVariable = "HAUL_TOKEN"

// The families of MPI.
const (
	OpenMPI = "Open MPI"
	MPICH   = "MPICH"
)

// launcher is a row of the table of launchers: the variables that hold a process's rank.
type launcher struct {
	name                         string
	mpi                          string
	when                         []string // matches if all of them are set
	rank, size, local, localSize string
	address                      func(env func(string) string) string
}

// launchers are in the order in which Detect tries them. A job script of Slurm has SLURM_PROCID
// without being a task, and passes it on to the ranks of an mpirun in the script. The row of srun
// therefore needs SLURM_STEP_ID, and follows both rows of mpirun. Hydra's mpirun differs from
// srun's PMI in that it sets a local rank.
var launchers = []launcher{
	{"haul", "", []string{"HAUL_RANK", "HAUL_RANKS"}, "HAUL_RANK", "HAUL_RANKS", "HAUL_LOCAL_RANK", "HAUL_LOCAL_RANKS", func(env func(string) string) string { return env("HAUL_RENDEZVOUS") }},
	{"torchrun", "", []string{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", torchAddress},
	{"mpirun", OpenMPI, []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", nil},
	{"mpirun", MPICH, []string{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nil},
	{"srun", "", []string{"SLURM_STEP_ID", "SLURM_PROCID"}, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", slurmAddress},
	{"mpiexec", MPICH, []string{"PMI_RANK", "PMI_SIZE"}, "PMI_RANK", "PMI_SIZE", "", "", nil},
}

// Detect returns the rank of this process. Size is 1 if no launcher has started it, or if it is the
// only rank.
func Detect(env func(string) string) (Place, error) {
	for _, l := range launchers {
		set := true
		for _, v := range l.when {
			set = set && env(v) != ""
		}
		if set {
			return l.place(env)
		}
	}
	return Place{Launcher: "nobody", Size: 1, LocalSize: 1}, nil
}

func (l *launcher) place(env func(string) string) (p Place, err error) {
	p = Place{Launcher: l.name, MPI: l.mpi, LocalSize: 1, Token: env(TokenVariable)}
	number := func(name string, into *int) {
		text := env(name)
		text, _, _ = strings.Cut(text, "(") // Slurm's "4(x2)": four tasks on each of two nodes
		text, _, _ = strings.Cut(text, ",")
		if name == "" || text == "" {
			return
		}
		if *into, err = strconv.Atoi(text); err != nil {
			err = fmt.Errorf("%s is %q: %s should have set a number", name, env(name), l.name)
		}
	}
	for _, v := range []struct {
		name string
		into *int
	}{{l.rank, &p.Rank}, {l.size, &p.Size}, {l.local, &p.LocalRank}, {l.localSize, &p.LocalSize}} {
		if number(v.name, v.into); err != nil {
			return p, err
		}
	}
	if l.local == "" {
		p.LocalRank, p.LocalSize = p.Rank, p.Size
	}
	if p.Size < 1 || p.Rank < 0 || p.Rank >= p.Size {
		return p, fmt.Errorf("%s is %d and %s is %d: a rank is at least 0 and below their number", l.rank, p.Rank, l.size, p.Size)
	}
	if l.name == "srun" {
		switch { // the protocol of srun's plugin
		case env("PMIX_RANK") != "":
			p.MPI = OpenMPI
		case env("PMI_RANK") != "":
			p.MPI = MPICH
		}
	}
	if l.address != nil && p.Size > 1 {
		if p.Address = l.address(env); p.Address == "" && p.MPI == "" {
			return p, fmt.Errorf("%s says nothing about where rank 0 is", l.name)
		}
	}
	return p, nil
}

// torchAddress returns the port after MASTER_PORT: torchrun's agent listens at MASTER_PORT itself.
func torchAddress(env func(string) string) string {
	port, err := strconv.Atoi(env("MASTER_PORT"))
	if err != nil {
		return ""
	}
	return net.JoinHostPort(env("MASTER_ADDR"), strconv.Itoa(port+1))
}

// slurmAddress returns the step's first node, with a port that is computed from the job's number.
func slurmAddress(env func(string) string) string {
	node := firstNode(env("SLURM_STEP_NODELIST"))
	if node == "" {
		return ""
	}
	h := fnv.New32a()
	h.Write([]byte(env("SLURM_JOB_ID") + "." + env("SLURM_STEP_ID")))
	port := 20000 + int(h.Sum32()%20000)
	if p, err := strconv.Atoi(env("MASTER_PORT")); err == nil {
		port = p
	}
	return net.JoinHostPort(node, strconv.Itoa(port))
}

// firstNode returns the first node of a list like "node[07-09,12],other".
func firstNode(list string) string {
	stem, rest, ok := strings.Cut(list, "[")
	if first, _, comma := strings.Cut(list, ","); comma && (!ok || len(first) < len(stem)) {
		return first
	}
	if !ok {
		return list
	}
	if digits := strings.FieldsFunc(rest, func(r rune) bool { return r == '-' || r == ',' || r == ']' }); len(digits) > 0 {
		return stem + digits[0]
	}
	return ""
}

package comm

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// pmi is a server of PMI-1, the text protocol by which MPICH's processes find each other. MPI's
// launchers have such a server. For ranks of other launchers (torchrun, srun without a plugin,
// haul), rank 0 runs this one.
type pmi struct {
	n, local int
	mu       sync.Mutex
	keys     map[string]string
	waiting  []net.Conn // at the barrier
	served   sync.WaitGroup
}

// start serves one rank in a goroutine.
func (s *pmi) start(c net.Conn) { s.served.Go(func() { s.serve(c) }) }

// wait waits until all ranks have finalized, for at most `most`. A rank whose server exits earlier
// prints "readline failed" at the end of a successful run.
func (s *pmi) wait(most time.Duration) {
	all := make(chan struct{})
	go func() {
		s.served.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(most):
	}
}

// serve answers one rank until it finalizes.
func (s *pmi) serve(c net.Conn) {
	in := bufio.NewScanner(c)
	in.Buffer(nil, 1<<16)
	for in.Scan() {
		field := fields(in.Text())
		answer := ""
		switch field["cmd"] {
		case "init":
			answer = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
		case "get_maxes":
			answer = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0"
		case "get_appnum":
			answer = "cmd=appnum appnum=0 rc=0"
		case "get_my_kvsname":
			answer = "cmd=my_kvsname kvsname=haul rc=0"
		case "get_universe_size":
			answer = fmt.Sprintf("cmd=universe_size size=%d rc=0", s.n)
		case "put":
			s.mu.Lock()
			s.keys[field["key"]] = field["value"]
			s.mu.Unlock()
			answer = "cmd=put_result rc=0 msg=success"
		case "get":
			s.mu.Lock()
			v, ok := s.keys[field["key"]]
			s.mu.Unlock()
			if answer = "cmd=get_result rc=0 msg=success value=" + v; !ok {
				answer = "cmd=get_result rc=-1 msg=key_not_found value=unknown"
			}
		case "barrier_in":
			s.barrier(c)
			continue
		case "finalize":
			fmt.Fprintln(c, "cmd=finalize_ack rc=0")
			return
		default:
			answer = "cmd=unknown rc=-1"
		}
		fmt.Fprintln(c, answer)
	}
}

func (s *pmi) barrier(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting = append(s.waiting, c); len(s.waiting) < s.n {
		return
	}
	for _, c := range s.waiting {
		fmt.Fprintln(c, "cmd=barrier_out rc=0")
	}
	s.waiting = nil
}

// fields parses "cmd=put kvsname=haul key=k value=v". A value is the last field and may contain
// spaces and equals signs.
func fields(line string) map[string]string {
	out := map[string]string{}
	for line != "" {
		var pair string
		if strings.HasPrefix(line, "value=") {
			pair, line = line, ""
		} else {
			pair, line, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		k, v, _ := strings.Cut(pair, "=")
		out[k] = v
	}
	return out
}

// newPMI returns a server for n ranks, `local` of them on each machine. If local does not divide n,
// it assumes one rank per machine.
func newPMI(n, local int) *pmi {
	if local < 1 || n%local != 0 {
		local = 1
	}
	return &pmi{n: n, local: local, keys: map[string]string{"PMI_process_mapping": fmt.Sprintf("(vector,(0,%d,%d))", n/local, local)}}
}

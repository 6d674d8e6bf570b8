package comm

import (
	"bufio"
	"errors"
	"io"
	"net"
	"unsafe"
)

func newTCP(rank, n int, conns []net.Conn) *tcp {
	t := &tcp{rank: rank, n: n, conns: conns}
	for _, c := range conns {
		t.in = append(t.in, nil)
		if c != nil {
			t.in[len(t.in)-1] = bufio.NewReaderSize(c, 1<<16)
		}
	}
	return t
}

func (t *tcp) name() string            { return "TCP" }
func (t *tcp) do(f func() error) error { return f() }

func (t *tcp) close() error {
	var errs []error
	for _, c := range t.conns {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

var errPlain = errors.New("gradients do not cross plain connections")

// scatter and complete return an error: tcp carries no gradients.
func (t *tcp) scatter(unsafe.Pointer, unsafe.Pointer, []int32) error { return errPlain }
func (t *tcp) complete(unsafe.Pointer, []int32) error                { return errPlain }

func (t *tcp) broadcast(p unsafe.Pointer, n int) error {
	b := bytesAt(p, 0, n)
	if t.rank > 0 {
		_, err := io.ReadFull(t.in[0], b)
		return err
	}
	for _, c := range t.conns[1:] {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func (t *tcp) allgather(recv, send unsafe.Pointer, block int) error {
	all := bytesAt(recv, 0, block*t.n)
	if t.rank > 0 {
		if _, err := t.conns[0].Write(bytesAt(send, 0, block)); err != nil {
			return err
		}
		_, err := io.ReadFull(t.in[0], all)
		return err
	}
	copy(all, bytesAt(send, 0, block))
	for r := 1; r < t.n; r++ {
		if _, err := io.ReadFull(t.in[r], all[r*block:][:block]); err != nil {
			return err
		}
	}
	return t.broadcast(recv, len(all))
}

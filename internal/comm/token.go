package comm

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Both ends of a connection prove that they know the run's token: a process that can reach the port
// but does not have the token cannot become a rank. A proof is a MAC over random numbers that both
// ends choose for this connection. The token is never sent, and proofs are compared in constant
// time.

// minTokenLength is the least number of characters of a token that the user chooses.
const minTokenLength = 16

// proof returns a MAC (HMAC-SHA256) of words, with the token as the key.
func proof(token string, words ...string) string {
	m := hmac.New(sha256.New, []byte(token))
	for _, w := range words {
		fmt.Fprintf(m, "%d:%s", len(w), w)
	}
	return hex.EncodeToString(m.Sum(nil))
}

// admit is rank 0's side of the handshake. It returns the caller's purpose and rank; ok is false if
// the proof is wrong.
func admit(c net.Conn, token string) (purpose string, rank int, ok bool) {
	drawn := rand.Text()
	fmt.Fprintf(c, "haul %s\n", drawn)
	f := strings.Fields(readLine(c))
	if len(f) != 5 || f[0] != "haul" {
		return "", 0, false
	}
	if !hmac.Equal([]byte(f[4]), []byte(proof(token, "call", drawn, f[1], f[2], f[3]))) {
		return "", 0, false
	}
	rank, err := strconv.Atoi(f[3])
	if err != nil || rank < 1 {
		return "", 0, false
	}
	fmt.Fprintf(c, "haul %s\n", proof(token, "met", drawn, f[1]))
	return f[2], rank, true
}

var errStranger = errors.New("somebody else listens there, or a rank with another token")

// introduce is the caller's side of the handshake.
func introduce(c net.Conn, token, purpose string, rank int) error {
	f := strings.Fields(readLine(c))
	if len(f) != 2 || f[0] != "haul" {
		return errStranger
	}
	drawn, number := rand.Text(), strconv.Itoa(rank)
	fmt.Fprintf(c, "haul %s %s %s %s\n", drawn, purpose, number, proof(token, "call", f[1], drawn, purpose, number))
	answer, ok := strings.CutPrefix(readLine(c), "haul ")
	if !ok || !hmac.Equal([]byte(answer), []byte(proof(token, "met", f[1], drawn))) {
		return errStranger
	}
	return nil
}

// tokens is the source of the token for ranks without an MPI launcher: HAUL_TOKEN, which haul sets
// for ranks that it starts, or a file that rank 0 writes for other processes of the same user.
type tokens struct {
	given string
	file  string
}

func newTokens(p Place) (tokens, error) {
	if p.Token != "" {
		if len(p.Token) < minTokenLength || strings.ContainsAny(p.Token, " \t\r\n") {
			return tokens{}, fmt.Errorf("HAUL_TOKEN has %d characters: at least %d are needed, none of them a space", len(p.Token), minTokenLength)
		}
		return tokens{given: p.Token}, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return tokens{}, fmt.Errorf("ranks have no folder to leave a token in (%w): start all of them with the same HAUL_TOKEN", err)
	}
	name := fmt.Sprintf("%s-%d", strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:[]%`, r) {
			return '_'
		}
		return r
	}, p.Address), p.Size)
	return tokens{file: filepath.Join(dir, "haul", "ranks", name)}, nil
}

// create returns rank 0's token: the given token, or a random token that it writes to the file.
// forget deletes the file.
func (t tokens) create() (token string, forget func(), err error) {
	if t.given != "" {
		return t.given, func() {}, nil
	}
	token = rand.Text()
	if err := os.MkdirAll(filepath.Dir(t.file), 0o700); err != nil {
		return "", nil, fmt.Errorf("leave a token for the other ranks: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(t.file), ".token-*") // readable by this user only
	if err != nil {
		return "", nil, fmt.Errorf("leave a token for the other ranks: %w", err)
	}
	_, err = tmp.WriteString(token)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), t.file)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return "", nil, fmt.Errorf("leave a token for the other ranks: %w", err)
	}
	return token, func() {
		// another run may have overwritten the file
		if held, err := os.ReadFile(t.file); err == nil && string(held) == token {
			os.Remove(t.file)
		}
	}, nil
}

// current returns a caller's token. It is called before every attempt, because the file may be left
// from an earlier run.
func (t tokens) current() (string, error) {
	if t.given != "" {
		return t.given, nil
	}
	b, err := os.ReadFile(t.file)
	if err != nil || len(b) == 0 {
		return "", fmt.Errorf("rank 0 has left no token in %s: start it first, or all ranks with the same HAUL_TOKEN", t.file)
	}
	return string(b), nil
}

// call connects to rank 0 at the first address that answers. It retries for rendezvousTimeout.
func call(stop context.Context, addresses []string, token func() (string, error), purpose string, rank int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(stop, rendezvousTimeout)
	defer cancel()
	var d net.Dialer
	for last := error(nil); ; {
		for _, a := range addresses {
			word, err := token()
			if err != nil {
				last = err
				continue
			}
			try, done := context.WithTimeout(ctx, 2*time.Second)
			c, err := d.DialContext(try, "tcp", a)
			done()
			if err != nil {
				last = err
				continue
			}
			c.SetDeadline(time.Now().Add(5 * time.Second))
			if err := introduce(c, word, purpose, rank); err != nil {
				last = fmt.Errorf("%s: %w", a, err)
				c.Close()
				continue
			}
			c.SetDeadline(time.Time{})
			return c, nil
		}
		select {
		case <-ctx.Done():
			if stop.Err() != nil {
				return nil, stop.Err()
			}
			return nil, fmt.Errorf("rank %d cannot reach rank 0 at %s: %w", rank, strings.Join(addresses, ", "), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

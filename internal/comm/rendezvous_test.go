package comm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func knows(token string) func() (string, error) { return func() (string, error) { return token, nil } }

const theToken = "a token of a test, long enough"

// wall returns a rendezvous on loopback and its address.
func listening(t *testing.T) (*rendezvous, string) {
	t.Helper()
	m, err := listen("127.0.0.1:0", theToken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.ln.Close() })
	return m, m.ln.Addr().String()
}

// A process without the token becomes no rank, and receives no proof that would
func TestStrangersTakeNoRank(t *testing.T) {
	m, at := listening(t)
	heard := func(say func(drawn string) string) string {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		first := strings.Fields(readLine(c))
		if len(first) != 2 {
			t.Fatalf("rank 0 opens with %q", first)
		}
		fmt.Fprintf(c, "%s\n", say(first[1]))
		rest, _ := io.ReadAll(c)
		return string(rest)
	}
	for name, say := range map[string]func(string) string{
		"a constant":     func(string) string { return "haul apart watch 1" },
		"no proof":       func(d string) string { return "haul x watch 1" },
		"an empty proof": func(d string) string { return "haul x watch 1 -" },
		"another token": func(d string) string {
			return "haul x watch 1 " + proof("another token of a test", "call", d, "x", "watch", "1")
		},
		"no token": func(d string) string { return "haul x watch 1 " + proof("", "call", d, "x", "watch", "1") },
		"another rank": func(d string) string {
			return "haul x watch 2 " + proof(theToken, "call", d, "x", "watch", "1")
		},
		"another purpose": func(d string) string {
			return "haul x pmi 1 " + proof(theToken, "call", d, "x", "watch", "1")
		},
		"an older number": func(d string) string {
			return "haul x watch 1 " + proof(theToken, "call", rand.Text(), "x", "watch", "1")
		},
		"rank 0": func(d string) string { return "haul x watch 0 " + proof(theToken, "call", d, "x", "watch", "0") },
	} {
		if answer := heard(say); answer != "" {
			t.Errorf("%s was answered %q", name, answer)
		}
	}
	m.lock <- struct{}{}
	if len(m.conns) != 0 {
		t.Errorf("strangers have places: %v", m.conns)
	}
	<-m.lock
	c, err := call(t.Context(), []string{at}, knows(theToken), "watch", 1)
	if err != nil {
		t.Fatalf("the rank itself: %v", err)
	}
	defer c.Close()
	if conns, err := m.gather(t.Context(), "watch", 2); err != nil || conns[1] == nil {
		t.Errorf("%v, %v", conns, err)
	}
}

// A caller rejects a listener at rank 0's address that does not know the token.
func TestStrangersAreNotRankZero(t *testing.T) {
	for name, answer := range map[string]string{"silence": "", "an echo": "haul x\n", "no proof": "haul \n", "a word": "hello\n"} {
		a, b := net.Pipe()
		go func() {
			defer b.Close()
			fmt.Fprint(b, "haul drawn\n")
			readLine(b)
			fmt.Fprint(b, answer)
		}()
		if err := introduce(a, theToken, "watch", 1); !errors.Is(err, errStranger) {
			t.Errorf("%s: %v", name, err)
		}
		a.Close()
	}
}

// If a rank connects twice, the first connection stays.
func TestARanksPlaceIsNotTakenAgain(t *testing.T) {
	m, at := listening(t)
	first, err := call(t.Context(), []string{at}, knows(theToken), "watch", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	conns, err := m.gather(t.Context(), "watch", 2)
	if err != nil {
		t.Fatal(err)
	}
	second, err := call(t.Context(), []string{at}, knows(theToken), "watch", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	_ = second.SetDeadline(time.Now().Add(patience))
	if n, err := second.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("who came second reads %d, %v", n, err)
	}
	if again, err := m.gather(t.Context(), "watch", 2); err != nil || again[1] != conns[1] {
		t.Errorf("%v, %v", again, err)
	}
}

// A rank that is not below the number of ranks is an error that names it.
func TestARankPastTheirNumber(t *testing.T) {
	for rank, words := range map[int]string{1: "", 2: "rank 2 of 2 called"} {
		m, at := listening(t)
		c, err := call(t.Context(), []string{at}, knows(theToken), "watch", rank)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = m.gather(t.Context(), "watch", 2)
		if got := fmt.Sprint(err); words == "" && err != nil || words != "" && got != words {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// Rank 0 listens at the given address only.
func TestListensWhereItWasNamed(t *testing.T) {
	m, at := listening(t)
	_, port, _ := net.SplitHostPort(at)
	if a := m.ln.Addr().(*net.TCPAddr); !a.IP.Equal(net.IPv4(127, 0, 0, 1)) {
		t.Errorf("it listens at %v", a)
	}
	if runtime.GOOS == "linux" {
		if c, err := net.DialTimeout("tcp", "127.0.0.2:"+port, time.Second); err == nil {
			c.Close()
			t.Error("another address of this machine answers")
		}
	}
	if !strings.Contains(m.where(), "this machine alone") {
		t.Errorf("%q does not say that others cannot reach it", m.where())
	}
	for address, words := range map[string]string{
		"nowhere": "want host:port", at: "in use", "192.0.2.1:0": "no such address: name one of its own",
	} {
		if m, err := listen(address, theToken); err == nil {
			m.ln.Close()
			t.Errorf("%s is bound", address)
		} else if !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Ranks that a user starts by hand share the given token, or a token of rank 0.
func TestTokensOfRanksByHand(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p := Place{Launcher: Hand, Size: 2, Address: "[::1]:29500"}
	words, err := newTokens(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := words.current(); err == nil || !strings.Contains(err.Error(), "HAUL_TOKEN") {
		t.Errorf("before rank 0 has come: %v", err)
	}
	token, forget, err := words.create()
	if err != nil || len(token) < minTokenLength {
		t.Fatalf("%q, %v", token, err)
	}
	if got, err := words.current(); got != token || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	info, err := os.Stat(words.file)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	other, forgetOther, err := words.create()
	if err != nil || other == token {
		t.Errorf("two runs have the token %q, %v", other, err)
	}
	forget() // the end of this run does not delete the file of a later one
	if got, err := words.current(); got != other || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	forgetOther()
	if _, err := os.Stat(words.file); !os.IsNotExist(err) {
		t.Errorf("the token is still there: %v", err)
	}
	for n, ok := range map[int]bool{minTokenLength - 1: false, minTokenLength: true, minTokenLength + 1: true} {
		p.Token = strings.Repeat("x", n)
		words, err := newTokens(p)
		if (err == nil) != ok {
			t.Errorf("%d characters: %v", n, err)
		}
		if !ok {
			continue
		}
		if token, _, err := words.create(); token != p.Token || err != nil {
			t.Errorf("%q, %v", token, err)
		}
		if token, err := words.current(); token != p.Token || err != nil {
			t.Errorf("%q, %v", token, err)
		}
	}
	if got, err := Detect(func(name string) string {
		return map[string]string{"HAUL_RANK": "1", "HAUL_RANKS": "2", "HAUL_RENDEZVOUS": "a:1", "HAUL_TOKEN": "t"}[name]
	}); got.Token != "t" || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// ticking returns a watch over one other rank. Its clock stands still unless the test moves it.
func ticking(t *testing.T, rank int) (v *watch, words *bytes.Buffer, ended *int) {
	t.Helper()
	a, b := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, b) }()
	t.Cleanup(func() { a.Close(); b.Close() })
	words, ended = new(bytes.Buffer), new(int)
	v = &watch{rank: rank, n: 2, out: words, exit: func(int) { *ended++ }, clock: func() int64 { return 0 }, conns: make([]*line, 2)}
	v.conns[1-rank] = &line{Conn: a}
	return v, words, ended
}

// A rank is lost if it was silent for longer than the limit while this rank was running.
func TestSilenceIsMeasured(t *testing.T) {
	for after, lost := range map[time.Duration]bool{silenceLimit - 1: false, silenceLimit: false, silenceLimit + 1: true} {
		v, words, ended := ticking(t, 0)
		for at := beat; at < after; at += beat {
			if !v.checkRanks(int64(at)) {
				t.Fatalf("it is lost after %v", at)
			}
		}
		if v.checkRanks(int64(after)) == lost || (*ended == 1) != lost || lost != strings.Contains(words.String(), "rank 1 of 2 has not answered for 6 s") {
			t.Errorf("after %v: %q", after, words)
		}
	}
	if silenceLimit < 3*beat || silenceLimit > 15*time.Second {
		t.Errorf("a rank is lost after %v, with a beat every %v", silenceLimit, beat)
	}
}

// A rank that was stopped itself does not report others as lost. A rank that was merely scheduled
// late does.
func TestWhoSleptBlamesNobody(t *testing.T) {
	for slept, blames := range map[time.Duration]bool{2 * beat: true, 2*beat + 1: false, time.Hour: false} {
		v, words, ended := ticking(t, 0)
		v.awake.Store(int64(silenceLimit + 1 - 2*beat))
		now := int64(silenceLimit + 1 - 2*beat + slept)
		if v.checkRanks(now) == blames || (*ended == 1) != blames {
			t.Errorf("after %v: %q", slept, words)
		}
		if blames {
			continue
		}
		if !v.checkRanks(now+int64(beat)) || *ended != 0 {
			t.Errorf("a beat after %v: %q", slept, words)
		}
		for i := range 7 {
			v.checkRanks(now + int64(beat)*int64(i+1))
		}
		if *ended != 1 {
			t.Errorf("who stays silent after %v is not lost: %q", slept, words)
		}
	}
}

// One of the ranks that receive a failure prints it. A rank 0 that was stopped prints nothing when
// it wakes.
func TestOneRankPrintsALoss(t *testing.T) {
	for _, c := range []struct {
		rank   int
		lost   string
		speaks bool
	}{{0, "1", true}, {0, "0", false}, {1, "0", true}, {1, "1", false}, {1, "2", false}, {2, "0", false}} {
		words, ended := new(bytes.Buffer), 0
		v := &watch{rank: c.rank, n: 3, out: words, exit: func(int) { ended++ }}
		v.end(c.lost, "is gone", 0)
		v.end(c.lost, "is gone", 0)
		if got := strings.Count(words.String(), "\n"); (got == 1) != c.speaks || got > 1 || ended != 1 {
			t.Errorf("rank %d says of %s %q, and ends %d times", c.rank, c.lost, words, ended)
		}
	}
}

// If a run ends before its first checkpoint, the message does not advise --resume.
func TestALossAdvisesHowToResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "last.safetensors")
	for _, want := range []string{"nothing was saved yet: start over with --force\n", "what was saved is whole, continue with --resume\n"} {
		words := new(bytes.Buffer)
		w := &World{watch: &watch{n: 2, out: words, exit: func(int) {}}}
		w.Saves(path)
		w.watch.end("1", "is gone", 0)
		if !strings.HasSuffix(words.String(), want) {
			t.Errorf("%q, want %q", words, want)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	(*World)(nil).Saves(path) // a single process
}

// Collect fails unless the ranks return exactly the numbers that Cut gave them.
func TestCollectCountsWhatCame(t *testing.T) {
	for made, words := range map[int]string{3: "ranks made 6 numbers of 7", 4: "ranks made more than was shared out"} {
		for rank, err := range each(Local(2), func(w *World) error { return w.Collect(make([]float64, 7), make([]float64, made), false) }) {
			if err == nil || err.Error() != words {
				t.Errorf("rank %d, %d each: %v", rank, made, err)
			}
		}
	}
}

// Counts and offsets of a message are 32 bits wide, padding included.
func TestAMessageHasItsBound(t *testing.T) {
	w := Local(2)[0]
	for _, c := range []struct {
		n  int
		ok bool
	}{{math.MaxInt32/4 - 2*16, true}, {math.MaxInt32/4 - 2*16 + 1, false}, {math.MaxInt32 / 4, false}} {
		if err := w.cut(c.n, 16, 4); (err == nil) != c.ok {
			t.Errorf("%d numbers: %v", c.n, err)
		}
		if c.ok && (w.cuts[2] != int32(4*c.n) || w.cuts[1] < 0) {
			t.Errorf("%d numbers are cut at %v", c.n, w.cuts)
		}
	}
}

// Ranks decide on stopping about every askEvery. They do so after every update if updates are slow,
// and after at most 1024 if updates are fast.
func TestRanksAskByTheClock(t *testing.T) {
	for took, want := range map[time.Duration][3]int{
		0: {2, 16, 1024}, askEvery - 1: {2, 16, 1024}, askEvery: {1, 8, 1024}, 2 * askEvery: {1, 8, 1024}, 2*askEvery + 1: {1, 4, 512},
	} {
		for i, every := range []int{1, 8, 1024} {
			if got := askAfter(every, took); got != want[i] {
				t.Errorf("%d updates took %v: then every %d, want %d", every, took, got, want[i])
			}
		}
	}
	// An hour ago and an hour ahead: the result does not depend on how fast this test runs.
	for ago, want := range map[time.Duration]int{time.Hour: 4, -time.Hour: 16} {
		w := Local(1)[0]
		w.every, w.last = 8, time.Now().Add(-ago)
		if _, err := w.Stop(w.Agree(context.Background()), w.next); err != nil {
			t.Fatal(err)
		}
		if w.every != want || w.next < want {
			t.Errorf("asked %v ago: then every %d, the next at %d; want every %d", ago, w.every, w.next, want)
		}
	}
}

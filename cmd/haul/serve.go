package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"haul/internal/serve"
	"haul/policies"
)

// serveFlags say what is shown, where and to whom.
type serveFlags struct {
	runs  string
	addr  string
	hosts []string
	token string
	open  bool
	json  bool
}

func (a *app) newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show runs, routes and traces in a browser, and answer over HTTP",
		Long: `Serve one page with three rooms, and the HTTP API behind it, from this binary alone:

  Runs    every run of a folder as it learns: curves over each other, gap, speed, settings, pictures
  Routes  place customers or drop a file, and solve them by a policy, a search or exactly
  Doctor  drop a profiler's trace and read why the run is slow

Only this machine can connect unless --addr says otherwise, and then only who has the token, which is
printed at the start. The server reads the folder and writes nothing; runs may start, go on and end
meanwhile. The API is described at /api/v1/openapi.json, metrics for Prometheus are at /metrics.
Ctrl-C ends it. docs/serve.md has the whole story.`,
		Example: `  haul serve
  haul serve --runs runs --addr 127.0.0.1:8420 --open
  haul serve --addr 0.0.0.0:8420 --host lab.example`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), &f) },
	}
	cmd.Flags().StringVar(&f.runs, "runs", "runs", "folder of the runs to show; it may come into being later")
	cmd.Flags().StringVar(&f.addr, "addr", "127.0.0.1:8420", "address and port to listen on; port 0 takes a free one")
	cmd.Flags().StringArrayVar(&f.hosts, "host", nil, "name that browsers may reach this machine by, beside its addresses (repeatable)")
	cmd.Flags().StringVar(&f.token, "token", "", "what others must show; made up where --addr reaches beyond this machine")
	cmd.Flags().BoolVar(&f.open, "open", false, "open the page in the browser")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object with the address when it listens")
	return cmd
}

// served is what --json prints.
type served struct {
	URL   string `json:"url"`
	Token string `json:"token,omitempty"`
	Runs  string `json:"runs"`
}

func (a *app) serve(ctx context.Context, f *serveFlags) error {
	signal.Reset(syscall.SIGPIPE) // a client that leaves is no reason to end
	host, port, err := net.SplitHostPort(f.addr)
	if err != nil {
		return usagef("--addr %s: an address and a port are needed, as in 127.0.0.1:8420", f.addr)
	}
	if n, err := strconv.Atoi(port); err == nil && (n < 0 || n > math.MaxUint16) {
		return usagef("--addr %s: a port is at most %d, 0 takes a free one", f.addr, math.MaxUint16)
	}
	if f.token != "" && len(f.token) < 16 {
		return usagef("--token has %d characters: at least 16 are needed, or none for one that is made up", len(f.token))
	}
	if strings.Trim(f.token, tokenLetters) != "" {
		return usagef("--token has characters that an address or a cookie would change: letters, digits, - and _ are what it takes")
	}
	if f.token == "" && !loopback(host) {
		f.token = rand.Text()
	}
	s, err := serve.New(serve.Options{Runs: f.runs, Hosts: servedHosts(f.hosts, host), Token: f.token,
		Version: readVersion().String(), Shipped: shippedPolicies(), Log: func(text string) { fmt.Fprintf(a.stderr, "%s\n", oneLine(text)) }})
	if err != nil {
		return err
	}
	defer s.Close()
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is in use by another program: choose another port, as in --addr %s", f.addr, net.JoinHostPort(host, "0"))
		}
		return fmt.Errorf("listen on %s: %w", f.addr, err)
	}
	out := served{URL: pageURL(ln.Addr(), host, f.token), Token: f.token, Runs: f.runs}
	if f.json {
		err = a.emit(out)
	} else {
		_, err = fmt.Fprintf(a.stdout, "%s\n", out.URL)
	}
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	a.explainServing(f, host)
	if f.open {
		if err := browse(out.URL); err != nil {
			fmt.Fprintf(a.stderr, "no browser could be opened: %v\n", err)
		}
	}
	if err := s.Serve(ctx, ln); err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Fprintln(a.stderr, "stopped")
	return nil
}

// tokenLetters are what a token is made of: they stand in an address, a header and a cookie as they
// are.
const tokenLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// servedHosts are the names that requests may ask for: those given, and the one that --addr listens
// on, which the printed address has.
func servedHosts(given []string, host string) []string {
	if host == "" || net.ParseIP(host) != nil || loopback(host) {
		return given
	}
	return append(slices.Clone(given), host)
}

// shippedPolicies are those that come with the program.
func shippedPolicies() (out []serve.Shipped) {
	for _, name := range policies.Names() {
		out = append(out, serve.Shipped{Name: name, Read: func() ([]byte, error) { return policies.Read(name) }})
	}
	return out
}

// explainServing says in words what whoever started the server should know.
func (a *app) explainServing(f *serveFlags, host string) {
	if _, err := os.Stat(f.runs); err != nil {
		fmt.Fprintf(a.stderr, "%s does not exist yet: runs appear as soon as haul train makes one\n", f.runs)
	}
	if !loopback(host) {
		fmt.Fprintln(a.stderr, "others can connect who have the token in that address; the connection is not encrypted: put it behind TLS on a network you do not trust")
	}
	fmt.Fprintln(a.stderr, "Ctrl-C ends it")
}

// loopback says that only this machine can reach a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// pageURL is the address to open: a host that stands for all of them is shown as this machine.
func pageURL(at net.Addr, host, token string) string {
	_, port, _ := net.SplitHostPort(at.String()) // of a listener
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if name, err := os.Hostname(); err == nil && addressOf(name) != "" {
			host = addressOf(name)
		}
	}
	url := "http://" + net.JoinHostPort(host, port) + "/"
	if token != "" {
		url += "?token=" + token
	}
	return url
}

// addressOf is an address that others can reach a host by.
func addressOf(name string) string {
	ips, err := net.LookupIP(name)
	if err != nil {
		return ""
	}
	for _, ip := range ips {
		if ip.To4() != nil && !ip.IsLoopback() {
			return ip.String()
		}
	}
	return ""
}

// browse opens a page in the desktop's browser.
func browse(url string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", url).Start()
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", url).Start()
	}
	return exec.Command("xdg-open", url).Start()
}

// Package serve is the verb haul serve.
package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/limits"
	"haul/internal/serve"
	"haul/policies"
)

// serveFlags say what the server shows, where it listens and who may connect.
type serveFlags struct {
	runs  string
	addr  string
	hosts []string
	token string
	open  bool
	json  bool

	tokenFile string
	jobs      string
	keyFile   string
	limits    []string
	log       string
	rate      float64
	proxies   []string
	train     bool
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show runs, routes and traces in a browser, and serve an HTTP API",
		Long: `The page has three parts:

  Runs    training runs of a folder as they learn: curves, gaps, speed, settings, pictures
  Routes  place customers or open a file, and solve by a policy, by search or exactly
  Doctor  open a profiler's trace and read why the run is slow

Access. Only this machine can connect unless --addr says otherwise. Others then need a token, from --token, --token-file or HAUL_TOKEN; if
none is given, one is made and printed.

Files. The server reads the folder of runs and writes nothing to it, unless --train lets the page start runs. Runs may start, continue
and end while the server is up. Long solves are jobs; with --jobs they survive a restart.

API. /api/v1/openapi.json describes the API, /metrics has metrics for Prometheus, /healthz and /readyz say whether the server is alive
and ready. Ctrl-C ends the server. docs/serve.md has the details, docs/deploy.md says how to run it as a service.`,
		Example: `  haul serve
  haul serve --runs runs --addr 127.0.0.1:8420 --open
  haul serve --addr 0.0.0.0:8420 --host lab.example
  haul serve --jobs jobs --rate 50 --log json`,
		Args: cli.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), &f) },
	}
	cmd.Flags().StringVar(&f.runs, "runs", "runs", "folder of the runs to show; it may be created later")
	cmd.Flags().StringVar(&f.addr, "addr", "127.0.0.1:8420", "address and port to listen on; port 0 takes a free one")
	cmd.Flags().StringArrayVar(&f.hosts, "host", nil, "host name by which browsers may reach this machine, beside its addresses (repeatable)")
	cmd.Flags().StringVar(&f.token, "token", "", "token that clients must send (default: made and printed if --addr accepts other machines)")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "file whose first line is the token (or set HAUL_TOKEN)")
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "file with a key of a client per line, instead of the token: each sees only the jobs that it sent")
	cmd.Flags().StringArrayVar(&f.limits, "limit", nil, "how much an input may hold, as KEY=NUMBER (docs/formats.md; repeatable)")
	cmd.Flags().StringVar(&f.jobs, "jobs", "", "folder that keeps jobs, so that they survive a restart (default: jobs are in memory)")
	cmd.Flags().StringVar(&f.log, "log", "", "log each request on standard error: text or json")
	cmd.Flags().Float64Var(&f.rate, "rate", 0, "most requests per second from one address, with bursts of twice as many; 0: no limit")
	cmd.Flags().StringArrayVar(&f.proxies, "proxy", nil, "address or network of a reverse proxy whose X-Forwarded-For is trusted (repeatable)")
	cmd.Flags().BoolVar(&f.train, "train", false, "let clients with the token start and stop training runs, one at a time")
	cmd.Flags().BoolVar(&f.open, "open", false, "open the page in the browser")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object with the address once the server listens")
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
		return cli.Usagef("--addr %s: an address and a port are needed, as in 127.0.0.1:8420", f.addr)
	}
	if n, err := strconv.Atoi(port); err == nil && (n < 0 || n > math.MaxUint16) {
		return cli.Usagef("--addr %s: a port is at most %d, 0 takes a free one", f.addr, math.MaxUint16)
	}
	secret, err := f.readToken()
	if err != nil {
		return err
	}
	if f.token == "" && (!loopback(host) || f.train || f.keyFile != "") {
		f.token = rand.Text()
	}
	access, err := a.accessLog(f.log)
	if err != nil {
		return err
	}
	proxies, err := networks(f.proxies)
	if err != nil {
		return err
	}
	if !(f.rate >= 0) || math.IsInf(f.rate, 0) {
		return cli.Usagef("--rate %g: a number of requests per second is needed, 0 for no limit", f.rate)
	}
	keys, err := f.readKeys()
	if err != nil {
		return err
	}
	input := limits.ForService()
	if err := input.Raise(f.limits); err != nil {
		return cli.AsUsage(err)
	}
	var training *serve.Training
	if f.train {
		if training, err = trainable(); err != nil {
			return err
		}
	}
	s, err := serve.New(serve.Options{Train: training, Runs: f.runs, Hosts: servedHosts(f.hosts, host), Token: f.token, Keys: keys, Jobs: f.jobs, Access: access, Proxies: proxies,
		Limits: serve.Limits{Rate: f.rate, Input: input}, Version: cli.ReadVersion().String(), Shipped: shippedPolicies(), Log: func(text string) { fmt.Fprintf(a.Stderr, "%s\n", cli.OneLine(text)) }})
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
	shown := f.token
	if secret { // who gave it knows it, and logs are read by others
		shown = ""
	}
	out := served{URL: pageURL(ln.Addr(), host, shown), Token: shown, Runs: f.runs}
	if f.json {
		err = a.Emit(out)
	} else {
		_, err = fmt.Fprintf(a.Stdout, "%s\n", out.URL)
	}
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	a.explainServing(f, host)
	if f.open {
		if err := browse(out.URL); err != nil {
			fmt.Fprintf(a.Stderr, "no browser could be opened: %v\n", err)
		}
	}
	if err := s.Serve(ctx, ln); err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Fprintln(a.Stderr, "stopped")
	return nil
}

// readToken finds the token and judges it. One out of a file or the environment is secret: it is
// not printed.
func (f *serveFlags) readToken() (secret bool, err error) {
	from := "--token"
	switch {
	case f.token != "" && f.tokenFile != "":
		return false, cli.Usagef("--token and --token-file are both given: one is enough")
	case f.tokenFile != "":
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return false, fmt.Errorf("--token-file: %w", err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if f.token = strings.TrimSpace(first); f.token == "" {
			return false, fmt.Errorf("--token-file %s has no token in its first line", f.tokenFile)
		}
		from, secret = "the token of --token-file", true
	case f.token == "" && os.Getenv("HAUL_TOKEN") != "":
		f.token, from, secret = os.Getenv("HAUL_TOKEN"), "HAUL_TOKEN", true
	}
	if f.token != "" && len(f.token) < 16 {
		return false, cli.Usagef("%s has %d characters: at least 16 are needed (without a token, one is made)", from, len(f.token))
	}
	if strings.Trim(f.token, tokenLetters) != "" {
		return false, cli.Usagef("%s has other characters than letters, digits, - and _: an address or a cookie would change them", from)
	}
	return secret, nil
}

// readKeys reads the keys of clients; nil if none are given. Empty lines and those that begin with
// # are passed over.
func (f *serveFlags) readKeys() (keys []string, err error) {
	if f.keyFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		key := strings.TrimSpace(line)
		switch {
		case key == "" || key[0] == '#':
			continue
		case len(key) < 16 || strings.Trim(key, tokenLetters) != "":
			return nil, fmt.Errorf("--key-file %s:%d: a key has at least 16 letters, digits, - and _", f.keyFile, i+1)
		case slices.Contains(keys, key) || key == f.token:
			return nil, fmt.Errorf("--key-file %s:%d: the key is given twice", f.keyFile, i+1)
		}
		keys = append(keys, key)
	}
	if keys == nil {
		return nil, fmt.Errorf("--key-file %s has no key", f.keyFile)
	}
	return keys, nil
}

// accessLog writes requests to standard error, as text or as JSON.
func (a *app) accessLog(kind string) (*slog.Logger, error) {
	switch kind {
	case "":
		return nil, nil
	case "text":
		return slog.New(slog.NewTextHandler(a.Stderr, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.Stderr, nil)), nil
	}
	return nil, cli.Usagef("--log %s: text or json is needed", kind)
}

// networks reads addresses and networks.
func networks(given []string) (out []netip.Prefix, err error) {
	for _, text := range given {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return nil, cli.Usagef("--proxy %s: an address as 10.0.0.1 or a network as 10.0.0.0/8 is needed", text)
			}
			p = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		}
		out = append(out, p.Masked())
	}
	return out, nil
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

// shippedPolicies are the policies of the binary.
func shippedPolicies() (out []serve.Shipped) {
	for _, name := range policies.Names() {
		out = append(out, serve.Shipped{Name: name, Read: func() ([]byte, error) { return policies.Read(name) }})
	}
	return out
}

// trainable is what runs can be started with here: the shipped settings, the
// quick ones first, and the devices.
func trainable() (*serve.Training, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("--train: %w", err)
	}
	t := &serve.Training{Program: program, Configs: config.Shipped(), Devices: []string{"auto", "cpu"}}
	if i := slices.Index(t.Configs, "quick"); i > 0 {
		t.Configs = append([]string{"quick"}, slices.Delete(t.Configs, i, i+1)...)
	}
	for _, d := range cli.ProbeCUDA().Devices {
		t.Devices = append(t.Devices, d.Device)
	}
	return t, nil
}

// explainServing says in words what whoever started the server should know.
func (a *app) explainServing(f *serveFlags, host string) {
	if _, err := os.Stat(f.runs); err != nil {
		fmt.Fprintf(a.Stderr, "%s does not exist yet: runs appear as soon as haul train makes one\n", f.runs)
	}
	if !loopback(host) {
		fmt.Fprintln(a.Stderr, "others can connect who have the token; the connection is not encrypted: put it behind TLS on a network you do not trust")
	}
	fmt.Fprintln(a.Stderr, "Ctrl-C ends it")
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

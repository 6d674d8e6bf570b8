package serve

import (
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// What a reader could break: the address in X-Forwarded-For counts only if the connection comes
// from a proxy that the server was started with. Any client can send that header.

// address is whom a request counts for: the other end of its connection, or where that is a proxy
// of ours, whom the proxy says that it speaks for.
func (s *Server) address(r *http.Request) string {
	host := hostOf(r.RemoteAddr)
	if !s.isProxy(host) {
		return host
	}
	// The last entry that no proxy of ours wrote for another proxy of ours.
	stated := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, one := range slices.Backward(stated) {
		addr, err := netip.ParseAddr(strings.TrimSpace(one))
		if err != nil {
			break
		}
		if host = addr.Unmap().String(); !s.isProxy(host) {
			break
		}
	}
	return host
}

func (s *Server) isProxy(host string) bool {
	if len(s.o.Proxies) == 0 {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(s.o.Proxies, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}

// clients counts what each address has under way, and how often it comes.
type clients struct {
	mu     sync.Mutex
	at     map[string]int
	spent  map[string]*bucket
	forget time.Time // when buckets that are full again were last thrown away
}

// bucket is how many requests an address has left, at a time.
type bucket struct {
	left float64
	at   time.Time
}

func newClients() *clients { return &clients{at: map[string]int{}, spent: map[string]*bucket{}} }

// enter counts a request of an address, by kind, until leave.
func (c *clients) enter(address, kind string, most int) (leave func(), err error) {
	key := kind + " " + address
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at[key] >= most {
		return nil, &problem{Status: http.StatusTooManyRequests, retry: 1,
			Detail: fmt.Sprintf("%d %s of this address are under way already: wait for one of them to end", most, kind)}
	}
	c.at[key]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.at[key]--; c.at[key] <= 0 {
			delete(c.at, key)
		}
	}, nil
}

// spend takes one of the requests that an address has: rate per second, two seconds' worth at once.
func (c *clients) spend(address string, rate float64, now time.Time) error {
	if rate <= 0 {
		return nil
	}
	most := max(1, 2*rate)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.forget) > time.Minute {
		c.forget = now
		for key, b := range c.spent {
			if b.left+rate*now.Sub(b.at).Seconds() >= most {
				delete(c.spent, key)
			}
		}
	}
	b := c.spent[address]
	if b == nil {
		b = &bucket{left: most, at: now}
		c.spent[address] = b
	}
	b.left, b.at = min(most, b.left+rate*now.Sub(b.at).Seconds()), now
	if b.left < 1 {
		return &problem{Status: http.StatusTooManyRequests, retry: max(1, int(math.Ceil((1-b.left)/rate))),
			Detail: fmt.Sprintf("more than %g requests per second of this address", rate)}
	}
	b.left--
	return nil
}

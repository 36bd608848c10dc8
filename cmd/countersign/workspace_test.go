package main

import (
	"net"
	"slices"
	"testing"
	"time"

	"countersign/internal/demo/shop"
)

// fixedListener is a listener at an address that the test's machine need not have.
type fixedListener struct {
	net.Listener
	addr net.TCPAddr
}

func (l fixedListener) Addr() net.Addr { return &l.addr }

// The demo reaches its own shop, whichever address it listens on.
func TestDemoReachesItsShop(t *testing.T) {
	for ip, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "::1": "::1", "192.168.1.5": "192.168.1.5", "0.0.0.0": "127.0.0.1", "::": "127.0.0.1",
	} {
		base := localURL(fixedListener{addr: net.TCPAddr{IP: net.ParseIP(ip), Port: 8484}})
		if wantURL := "http://" + net.JoinHostPort(want, "8484"); base != wantURL {
			t.Errorf("on %s, the demo's URL is %s, want %s", ip, base, wantURL)
		}
		if allowed := shopCatalog(shop.New(time.Now), base+shopPath).Own[0].Allow; !slices.Equal(allowed, []string{want}) {
			t.Errorf("on %s, the demo may connect to %q, want %q", ip, allowed, want)
		}
	}
}

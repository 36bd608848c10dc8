package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/demo/shop"
	"countersign/internal/demo/workspace"
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

// TestWorkspaceOnAllAddresses starts the workspace and the demo on all addresses of the machine. The printed URLs must
// be usable, and a bot must get its socket at the host that the bot uses.
func TestWorkspaceOnAllAddresses(t *testing.T) {
	t.Parallel()
	demo := launch(t, t.TempDir(), nil, "demo", "--no-browser", "--addr", "0.0.0.0:0")
	demo.says(`The model .* at http://127\.0\.0\.1:(\d+)/v1`)
	port := launch(t, t.TempDir(), nil, "workspace", "--addr", "0.0.0.0:0").says(`is open at http://127\.0\.0\.1:(\d+)`)
	open := "http://localhost:" + port + "/api/apps.connections.open"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, open, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+workspace.DemoAppToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var socket struct{ URL string }
	if err := json.NewDecoder(response.Body).Decode(&socket); err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(socket.URL); err != nil || !strings.HasPrefix(u.Host, "localhost:") {
		t.Errorf("a bot at localhost gets the socket %q (%v)", socket.URL, err)
	}
}

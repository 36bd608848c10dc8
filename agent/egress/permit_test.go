package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestPermits(t *testing.T) {
	for _, tt := range []struct {
		entry, host, at string
		want            bool
	}{
		{"10.0.0.0/8", "x.example", "10.1.2.3:80", true},
		{"10.0.0.0/8", "x.example", "11.1.2.3:80", true}, // public
		{"10.0.0.0/16", "x.example", "10.1.2.3:80", false},
		{"10.1.2.3", "x.example", "10.1.2.3:80", true},
		{"10.1.2.3:8080", "x.example", "10.1.2.3:80", false},
		{"10.1.2.3:8080", "x.example", "10.1.2.3:8080", true},
		{"[fd00::1]:8080", "x.example", "[fd00::1]:8080", true},
		{"[fd00::1]:8080", "x.example", "[fd00::1]:80", false},
		{"fd00::/8", "x.example", "[fd00::1]:80", true},
		{"x.example", "x.example", "10.1.2.3:80", true},
		{"X.Example", "x.example", "10.1.2.3:80", true},
		{"x.example:443", "x.example", "10.1.2.3:80", false},
		{"x.example:443", "x.example", "10.1.2.3:443", true},
		{"x.example", "y.example", "10.1.2.3:80", false},
		{"example", "x.example", "10.1.2.3:80", false}, // an entry must match the whole name
		{"x.example", "x.example", "127.0.0.1:80", true},
		{"x.example", "x.example", "100.64.0.1:80", true},
		{"x.example", "x.example", "[fd00::1]:80", true},
		// An entry with a name does not permit unspecified, link-local, multicast or metadata addresses. The owner of the
		// name could otherwise let the name resolve to such an address.
		{"x.example", "x.example", "169.254.169.254:80", false},
		{"x.example", "x.example", "[fd00:ec2::254]:80", false},
		{"x.example", "x.example", "0.0.0.0:80", false},
		{"x.example", "x.example", "[fe80::1]:80", false},
		{"x.example", "x.example", "224.0.0.1:80", false},
		{"169.254.169.254", "x.example", "169.254.169.254:80", true},
		// The result is the same for every notation of an address that the system may return.
		{"10.0.0.0/8", "x.example", "[::ffff:10.1.2.3]:80", true},
		{"fd00::/8", "x.example", "[::ffff:10.1.2.3]:80", false},
		// An address behind a permitted NAT64 gateway can be reached if it is public or has a permit of its own.
		{"64:ff9b::/96", "x.example", "[64:ff9b::a00:1]:80", false},
		{"64:ff9b::/96", "x.example", "[64:ff9b::5db8:d70e]:80", true},
	} {
		g, err := New(tt.entry)
		if err != nil {
			t.Errorf("%s: %v", tt.entry, err)
			continue
		}
		if err := g.admit(tt.host, netip.MustParseAddrPort(tt.at)); (err == nil) != tt.want {
			t.Errorf("%s lets %s go to %s: %v", tt.entry, tt.host, tt.at, err)
		}
	}
}

func TestEntries(t *testing.T) {
	for entry, want := range map[string]string{
		"10.0.0.0/8": "network 10.0.0.0/8", "10.0.0.7": "network 10.0.0.7/32", "10.0.0.7:80": "network 10.0.0.7/32 port 80",
		"::1": "network ::1/128", "[::1]": "network ::1/128", "[::1]:80": "network ::1/128 port 80", "CRM.internal": "host crm.internal",
		"crm.internal:443": "host crm.internal port 443", "localhost": "host localhost", "fd00::/8": "network fd00::/8",
		"_sip.example.com": "host _sip.example.com", "0.0.0.0/0": "network 0.0.0.0/0",
	} {
		p, err := ParsePermit(entry)
		got := "host " + p.Host
		if p.Host == "" {
			got = "network " + p.Network.String()
		}
		if p.Port != 0 {
			got += fmt.Sprintf(" port %d", p.Port)
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", entry, got, err, want)
		}
	}
	for _, entry := range []string{
		"", "10.0.0.1/8", "10.0.0.0/33", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "fe80::1%lo", "10.0.0.7:0", "10.0.0.7:65536", "10.0.0.7:080", "10.0.0.7:", "*.example.com", "a b",
		"http://crm.internal", "crm.internal/path", "crm.internal.", "0x7f.1", "127.1", "[10.0.0.1]", "[::1", "::1]:80", "[::1]x", "[::1]:x", "ⓛocalhost", "a..b", ".a", ":80",
	} {
		if p, err := ParsePermit(entry); !errors.Is(err, ErrPermit) {
			t.Errorf("%s was read as %+v, %v", entry, p, err)
		}
	}
	if _, err := New("10.0.0.0/8", "nonsense here"); !errors.Is(err, ErrPermit) {
		t.Errorf("%v", err)
	}
}

// An address that parsers could read in two ways is invalid.
func TestAddresses(t *testing.T) {
	for _, address := range []string{
		"https://public.example/", "http://93.184.215.14:8080/x?y=z", "http://[2606:4700::1]/", "https://a_b.example", "https://xn--bcher-kva.example/", "http://1password.example/", "http://10.0.0.1/",
	} {
		u, err := url.Parse(address)
		if err == nil {
			err = CheckURL(u)
		}
		if err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	g, err := New("10.0.0.2:8080", "10.0.0.3:443")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"http://10.0.0.1/": false, "http://10.0.0.2/": false, "http://10.0.0.2:8080/": true, "https://10.0.0.3/": true, "http://10.0.0.3/": false, "http://93.184.215.14/": true,
		"http://intranet.example/": true, "http://127.1/": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.CheckURL(u); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"http://[::ffff:93.184.215.14]/", "http://[2606:4700::1%25eth0]/", "http://public.example:0/", "http://public.example:080/", "http://public.example:65536/", "http://public.example:/",
		"http://public..example/", "http://.example/", "http://public.example./", "http://" + strings.Repeat("a.", 127) + "example/", "http://" + strings.Repeat("a", 64) + ".example/",
		"http://93.184.215.014/", "http://93.184.215/", "http://93.184.215.0xe/", "http://bücher.example/", "http:public.example/", "https://me@public.example/", "ws://public.example/", "https:///x",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		var refused *Refused
		if err := CheckURL(u); !errors.As(err, &refused) || refused.Permit != "" {
			t.Errorf("%s: %v", address, err)
		}
	}
}

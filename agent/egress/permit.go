package egress

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Permit is an allow entry: a permitted destination outside the public internet.
type Permit struct {
	Network netip.Prefix // the permitted network; a single address is a network with one address
	Host    string       // a host name in lower case, instead of Network
	Port    uint16       // zero: all ports
}

// ErrPermit means that an allow entry can't be parsed. The message describes the valid forms.
var ErrPermit = errors.New("write a network such as 10.0.0.0/8, an address such as 10.0.0.7, or a host name such as crm.example.com; an address or a name may end with a port, such as crm.example.com:443")

// ParsePermit parses an allow entry: a network, an address, or a host name. An address or a host name may have a port.
func ParsePermit(s string) (Permit, error) {
	if network, err := netip.ParsePrefix(s); err == nil {
		if network.Addr().Is4In6() || network != network.Masked() {
			return Permit{}, ErrPermit
		}
		return Permit{Network: network}, nil
	}
	if a, err := netip.ParseAddr(s); err == nil { // an IPv6 address without brackets
		return permitted(a, 0)
	}
	host, port, ok := splitPort(s)
	if !ok || host == "" {
		return Permit{}, ErrPermit
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return permitted(a, port)
	}
	if oddHost(host) != "" {
		return Permit{}, ErrPermit
	}
	return Permit{Host: strings.ToLower(host), Port: port}, nil
}

func permitted(a netip.Addr, port uint16) (Permit, error) {
	if a.Is4In6() || a.Zone() != "" {
		return Permit{}, ErrPermit
	}
	return Permit{Network: netip.PrefixFrom(a, a.BitLen()), Port: port}, nil
}

// splitPort splits host, host:port, [address] and [address]:port. A missing port is zero.
func splitPort(s string) (host string, port uint16, ok bool) {
	host, rest := s, ""
	if inner, bracketed := strings.CutPrefix(s, "["); bracketed {
		var closed bool
		if host, rest, closed = strings.Cut(inner, "]"); !closed || !strings.Contains(host, ":") {
			return "", 0, false
		}
	} else if i := strings.IndexByte(s, ':'); i >= 0 {
		host, rest = s[:i], s[i:]
	}
	if rest == "" {
		return host, 0, true
	}
	digits, colon := strings.CutPrefix(rest, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !colon || err != nil || n == 0 || digits != strconv.FormatUint(n, 10) {
		return "", 0, false
	}
	return host, uint16(n), true
}

// names reports whether the entry permits an address of kind k. An entry with a host name permits an address only if
// k.byName is true.
func (p Permit) names(host string, at netip.AddrPort, k kind) bool {
	switch {
	case p.Port != 0 && p.Port != at.Port():
		return false
	case p.Host != "":
		return k.byName && p.Host == host
	}
	return p.Network.Contains(at.Addr())
}

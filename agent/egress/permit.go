package egress

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Permit is an entry of allow: what may be connected to although it is not on the public internet.
type Permit struct {
	Network netip.Prefix // an address is a network of one
	Host    string       // a name, in lower case; then there is no network
	Port    uint16       // zero: every port
}

// ErrPermit says that an entry of allow can't be read. The wrapping error says how one is written.
var ErrPermit = errors.New("write a network such as 10.0.0.0/8, an address such as 10.0.0.7, or a host's name such as crm.example.com, the last two with a port if only one is meant")

// ParsePermit reads an entry of allow: a network, an address, or a host's name; the last two may have a port.
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

// splitPort parts host, host:port, [address] and [address]:port. The port is zero where there is none.
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

// String is the entry as it is written in the policy.
func (p Permit) String() string {
	s := p.Host
	switch {
	case p.Host == "" && !p.Network.IsSingleIP():
		return p.Network.String()
	case p.Host == "":
		s = p.Network.Addr().String()
	}
	if p.Port == 0 {
		return s
	}
	if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	return s + ":" + strconv.Itoa(int(p.Port))
}

// names reports whether the entry names the address or, where a name is enough for addresses of this kind, the host.
func (p Permit) names(host string, at netip.AddrPort, k kind) bool {
	switch {
	case p.Port != 0 && p.Port != at.Port():
		return false
	case p.Host != "":
		return k.byName && p.Host == host
	}
	return p.Network.Contains(at.Addr())
}

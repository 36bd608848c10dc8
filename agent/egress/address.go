package egress

import (
	"net/netip"
	"strings"
)

// kind describes the purpose of a range of addresses outside the public internet.
type kind struct {
	what   string
	byName bool // an allow entry may name the host; if byName is false, the entry must name the address or its network
}

// metadata is the name of a cloud's metadata service, which gives a virtual machine its configuration and its
// credentials.
const metadata = "the cloud's metadata"

// special lists the networks outside the public internet. The first entries are the metadata services of clouds. Most
// of the other networks are in IANA's special-purpose registries. The first match counts.
var special = []struct {
	network netip.Prefix
	kind
}{
	{prefix("169.254.169.254/32"), kind{what: metadata}},
	{prefix("169.254.170.2/32"), kind{what: metadata}},
	{prefix("168.63.129.16/32"), kind{what: metadata}}, // Azure's metadata service, with an address that looks public
	{prefix("100.100.100.200/32"), kind{what: metadata}},
	{prefix("192.0.0.192/32"), kind{what: metadata}},
	{prefix("fd00:ec2::/32"), kind{what: metadata}},
	{prefix("fd20:ce::/32"), kind{what: metadata}},

	{prefix("0.0.0.0/8"), kind{what: "an unspecified address, which is this machine"}},
	{prefix("10.0.0.0/8"), kind{what: "a private address", byName: true}},
	{prefix("100.64.0.0/10"), kind{what: "an address behind a carrier's NAT", byName: true}},
	{prefix("127.0.0.0/8"), kind{what: "this machine", byName: true}},
	{prefix("169.254.0.0/16"), kind{what: "a link-local address"}},
	{prefix("172.16.0.0/12"), kind{what: "a private address", byName: true}},
	{prefix("192.0.0.0/24"), kind{what: "an address for protocols"}},
	{prefix("192.0.2.0/24"), kind{what: "an address for documentation"}},
	{prefix("192.88.99.0/24"), kind{what: "a 6to4 relay"}},
	{prefix("192.168.0.0/16"), kind{what: "a private address", byName: true}},
	{prefix("198.18.0.0/15"), kind{what: "an address for benchmarks"}},
	{prefix("198.51.100.0/24"), kind{what: "an address for documentation"}},
	{prefix("203.0.113.0/24"), kind{what: "an address for documentation"}},
	{prefix("224.0.0.0/4"), kind{what: "a multicast address"}},
	{prefix("255.255.255.255/32"), kind{what: "the broadcast address"}},
	{prefix("240.0.0.0/4"), kind{what: "a reserved address"}},

	{prefix("::/128"), kind{what: "an unspecified address, which is this machine"}},
	{prefix("::1/128"), kind{what: "this machine", byName: true}},
	{prefix("::/96"), kind{what: "an IPv4 address in IPv6 notation"}},
	{nat64, kind{what: "an IPv4 address behind NAT64"}},
	{prefix("64:ff9b:1::/48"), kind{what: "an IPv4 address behind NAT64"}},
	{prefix("2001::/32"), kind{what: "a Teredo address"}},
	{prefix("2001::/23"), kind{what: "an address for protocols"}},
	{prefix("2001:db8::/32"), kind{what: "an address for documentation"}},
	{prefix("3fff::/20"), kind{what: "an address for documentation"}},
	{prefix("2002::/16"), kind{what: "a 6to4 address"}},
	{prefix("fc00::/7"), kind{what: "a unique local address", byName: true}},
	{prefix("fe80::/10"), kind{what: "a link-local address"}},
	{prefix("fec0::/10"), kind{what: "a site-local address"}},
	{prefix("ff00::/8"), kind{what: "a multicast address"}},
}

var (
	nat64  = prefix("64:ff9b::/96")
	global = prefix("2000::/3") // all IPv6 addresses assigned to the public internet
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// kindOf returns the kind of an address. For an address on the public internet, kindOf returns false.
func kindOf(a netip.Addr) (kind, bool) {
	for _, s := range special {
		if s.network.Contains(a) {
			return s.kind, true
		}
	}
	if a.Is6() && !global.Contains(a) {
		return kind{what: "a reserved address"}, true
	}
	return kind{}, false
}

// embedded returns the IPv4 address in a NAT64 address. A NAT64 gateway connects to this IPv4 address.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !nat64.Contains(a) {
		return netip.Addr{}, false
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:])), true
}

// oddHost says what is unusual in the spelling of a host, as the end of a sentence. For the usual spelling, oddHost
// returns "". Parsers interpret unusual spellings differently, so one address could be checked, and the connection made
// to another.
func oddHost(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		switch {
		case a.Zone() != "":
			return "has a zone; write the address without the percent sign and the zone after it"
		case a.Is4In6():
			return "is an IPv4 address in IPv6 notation; write " + a.Unmap().String()
		}
		return ""
	}
	switch {
	case host == "":
		return "is missing"
	case len(host) > 253:
		return "is longer than 253 characters, the limit of a host name"
	case strings.HasSuffix(host, "."):
		return "ends with a dot; leave it out"
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if !plainLabel(label) {
			return `has an invalid part; write letters, digits, "-", "_" and single dots`
		}
	}
	if looksNumeric(labels[len(labels)-1]) {
		return "is a number in an unusual notation; write an address as four decimal numbers without leading zeros, such as 192.0.2.1"
	}
	return ""
}

// plainLabel reports whether a part of a name consists of 1 to 63 ASCII letters, digits, hyphens and underscores.
func plainLabel(label string) bool {
	for _, c := range []byte(label) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return label != "" && len(label) <= 63
}

// looksNumeric reports whether a parser could read the last label of a host name as part of an IP address. The result
// is true for decimal digits, and for 0x with hexadecimal digits.
func looksNumeric(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(strings.ToLower(label), digits) == ""
}

package config

import (
	"net"
	"net/url"
	"path/filepath"
)

// noHeads is the value of COUNTERSIGN_AUDIT_HEADS that means "no file".
const noHeads = "none"

// audit reads the settings for sealing the history. By default, the files are beside the store.
func (r *envReader) audit(s Store) (a Audit) {
	if s.Path != "" {
		a = AuditBeside(s.Path)
	}
	if text := r.variables.AuditKey; text != "" {
		a.Key = filepath.Clean(text)
	}
	switch text := r.variables.AuditHeads; text {
	case "":
	case noHeads:
		a.Heads = ""
	default:
		a.Heads = filepath.Clean(text)
	}
	a.Syslog = r.syslog(r.variables.AuditSyslog)
	return a
}

// Suffixes of the files beside the store.
const (
	keySuffix   = ".audit-key"
	headsSuffix = ".heads"
)

// AuditBeside returns the default paths of the signing key and the heads, which are beside the store.
func AuditBeside(store string) Audit {
	return Audit{Key: store + keySuffix, Heads: store + headsSuffix}
}

// syslogPorts are the default ports of syslog addresses.
var syslogPorts = map[string]string{"udp": "514", "tcp": "601", "tls": "6514"}

func (r *envReader) syslog(text string) Syslog {
	const name, hint = "COUNTERSIGN_AUDIT_SYSLOG", "write udp://HOST:514, tcp://HOST:601, tls://HOST:6514 or unix:///dev/log"
	if text == "" {
		return Syslog{}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		r.wrong(name, quotedAddress(text)+" is not an address", hint)
	case u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return Syslog{Network: "unix", Address: filepath.Clean(u.Path)}
	case syslogPorts[u.Scheme] == "":
		r.wrong(name, quotedAddress(text)+" does not say how syslog is reached", hint)
	case u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		r.wrong(name, quotedAddress(text)+" is not a host with a port", hint)
	case u.Port() == "":
		return Syslog{Network: u.Scheme, Address: net.JoinHostPort(u.Hostname(), syslogPorts[u.Scheme])}
	default:
		return Syslog{Network: u.Scheme, Address: u.Host}
	}
	return Syslog{}
}

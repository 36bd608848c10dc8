package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// maxName is how long a tool's name may be.
const maxName = 64

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	oddPart   = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
)

// canonical is the name by which policy, people and model call a server's tool: the server's name, a dot, and the tool's. A name that has other characters or is
// too long keeps what is possible and ends with a hash of the whole, so that it is always the same, and never that of another tool.
func canonical(server, tool string, bare bool) string {
	full := server + "." + tool
	if bare {
		full = tool
	}
	if plainName.MatchString(full) {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	mark := "-" + hex.EncodeToString(sum[:4])
	plain := oddPart.ReplaceAllString(full, "_")
	return plain[:min(len(plain), maxName-len(mark))] + mark
}

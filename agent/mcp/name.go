package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// maxName is the maximum length of a tool's name.
const maxName = 64

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	oddPart   = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
)

// canonical returns the name of a server's tool for the policy, people and the model. The name consists of the server's
// name, a dot, and the tool's name. If the parameter bare is true, the name is the tool's name alone. Invalid
// characters are replaced, and long names are shortened. A changed name ends with a hash of the original name, so the
// changed name is stable and unique.
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

package approvers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Digest binds an execution to its exact bytes: SHA-256 over a domain tag, the execution id, the tool, the hash of
// the tool's definition and the argument bytes, each preceded by its length. In hex.
func Digest(execution, tool, toolHash string, args []byte) string {
	return hashParts("countersign/execution/v1", []byte(execution), []byte(tool), []byte(toolHash), args)
}

// hashParts hashes a domain tag and parts with their lengths, so that no two lists of parts collide by moving a border.
func hashParts(domain string, parts ...[]byte) string {
	h := sha256.New()
	writePart(h, []byte(domain))
	for _, p := range parts {
		writePart(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writePart(h hash.Hash, p []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(p)))
	h.Write(n[:])
	h.Write(p)
}

package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"unicode"
	"unicode/utf8"

	"go.etcd.io/bbolt"

	"countersign/store"
)

// checksumSize is the length of the checksum at the end of every row's value.
const checksumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C over the bucket's number, the key's length, the key and the value. So the checksum also
// detects that a row was moved to another key or bucket.
func checksum(in bucket, key, value []byte) uint32 {
	head := [5]byte{byte(in)}
	binary.BigEndian.PutUint32(head[1:], uint32(len(key)))
	sum := crc32.Update(0, castagnoli, head[:])
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}

// withChecksum appends the checksum to a value.
func withChecksum(in bucket, key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(value[:len(value):len(value)], checksum(in, key, value))
}

// cutChecksum removes the checksum from a stored value, and reports whether the checksum is right.
func cutChecksum(in bucket, key, stored []byte) (value []byte, ok bool) {
	n := len(stored) - checksumSize
	if n < 0 {
		return nil, false
	}
	return stored[:n:n], binary.BigEndian.Uint32(stored[n:]) == checksum(in, key, stored[:n])
}

// schemaSum returns the schema version followed by its checksum. The checksum detects a damaged version number. Only a
// store whose rows have checksums contains this value.
func schemaSum(version int) []byte {
	return withChecksum(0, schemaKey, []byte(strconv.Itoa(version)))
}

// putSchema writes the current schema version. putSchema is called after all rows have their checksum.
func putSchema(root *bbolt.Bucket) error {
	if err := root.Put(sumKey, schemaSum(schema)); err != nil {
		return err
	}
	return root.Put(schemaKey, []byte(strconv.Itoa(schema)))
}

func damagedRow(in bucket, key []byte, why string) *store.DamagedError {
	d := store.Damage{Bucket: in.String(), Key: shownKey(key), Why: why}
	if recordBuckets[in] && len(key) <= maxKeyPart {
		d.ID = string(key)
	}
	if conversation, rest, ok := cutText(key); in == messages && ok && len(rest) == 8 {
		d.ID, d.Seq = conversation, binary.BigEndian.Uint64(rest)
	}
	if chain, seq, ok := auditKey(key); ok && (in == audit || in == auditPayloads) {
		d.ID, d.Seq = chain, seq
	}
	return &store.DamagedError{Damage: d}
}

// whyChecksum is the reason given for most damaged rows.
const whyChecksum = "its checksum does not match its content"

// recordBuckets are the buckets whose keys are record ids.
var recordBuckets = map[bucket]bool{
	conversations: true, turns: true, calls: true, requests: true, executions: true, elicitations: true, inbox: true, outboxMessages: true, settings: true,
	grants: true, absences: true,
}

// mostShown is the maximum length of a key that a text shows. A longer key is usually damaged, and may contain a part of
// somebody's file.
const mostShown = 512

// shownKey returns a key in readable form. A printable text is unchanged, any other text is in Go syntax, and a key
// that is not a text is in hexadecimal. A long key is cut off.
func shownKey(key []byte) string {
	if len(key) > mostShown {
		return fmt.Sprintf("%s… (%d bytes, CRC-32C %08x)", shownKey(key[:mostShown/16]), len(key), crc32.Checksum(key, castagnoli))
	}
	if !utf8.Valid(key) {
		return fmt.Sprintf("%x", key)
	}
	for _, c := range string(key) {
		if !unicode.IsPrint(c) {
			return strconv.Quote(string(key))
		}
	}
	return string(key)
}

package bolt

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// packing says which rows of a bucket are compressed, and how. Each row is compressed with a dictionary of texts that
// many rows contain. Only rows that hardly ever change are compressed: messages, renderings, payloads, and closed
// records of other kinds (table.closed). An open record is not compressed, because it would be compressed again after
// every change. Audit records have their own encoding: see shorten.
type packing struct {
	rows packedRows
	mark byte // the first byte of a compressed value; no uncompressed value begins with this byte
}

type packedRows byte

const (
	noRows packedRows = iota
	closedRecords
	allRows
)

var packings = [bucketEnd]packing{
	messages:       {allRows, packed},
	renderings:     {allRows, packed},
	audit:          {allRows, short},
	auditPayloads:  {allRows, packed},
	conversations:  {closedRecords, packedRecord},
	turns:          {closedRecords, packedRecord},
	calls:          {closedRecords, packedRecord},
	requests:       {closedRecords, packedRecord},
	executions:     {closedRecords, packedRecord},
	elicitations:   {closedRecords, packedRecord},
	inbox:          {closedRecords, packedRecord},
	outboxMessages: {closedRecords, packedRecord},
	grants:         {closedRecords, packedRecord},
}

// These constants are the possible first bytes of a compressed value. An uncompressed record begins with its version,
// which is never 0. An uncompressed audit record begins with its leaf, and the first byte of a leaf is 0 or 255.
const (
	packedRecord = 0
	flatePacked  = 1 // written by programs of layout version 7
	flateBody    = 2 // a rendering that programs of layout version 7 wrote; the bytes of its text follow the record, because base64 text compresses badly
	packed       = 3
	packedBody   = 4 // a rendering whose text follows the record as bytes
	short        = 5 // an audit record: see shorten
)

// packFrom is the minimum length in bytes of the part of a value that is compressed: see keptOf. Shorter values would
// save too little.
const packFrom = 256

// The dictionaries must never change, because stored rows were compressed with them. Each compressed row contains the
// id of its dictionary. A new dictionary must get a new id.
var (
	//go:embed dictionary.txt
	cardDictionary []byte
	//go:embed dictionary1.bin
	recordDictionary []byte

	dictionary = append(bytes.Clone(recordDictionary), cardDictionary...)
)

const dictionaryID = 1

// thoroughFrom is the size in bytes from which the encoder named thorough compresses a value, if all rows of the bucket
// are compressed. Cards are such values. The encoder named quick compresses all other values. Other transactions wait
// while a value is compressed. So quick leaves out zstd's entropy coding, which would double the time (ADR 8).
const thoroughFrom = 1 << 10

var (
	quick    = packer(zstd.SpeedFastest, false)
	thorough = packer(zstd.SpeedBetterCompression, true)
)

func packer(level zstd.EncoderLevel, entropy bool) *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(dictionaryID, dictionary), zstd.WithEncoderLevel(level),
		zstd.WithNoEntropyCompression(!entropy),
		zstd.WithEncoderCRC(false), // the row has a checksum
		zstd.WithSingleSegment(true), zstd.WithWindowSize(64<<10), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constants
	}
	w.EncodeAll(nil, nil) // creates the encoder's channel here: a channel from a test's synctest bubble would work only in that bubble
	return w
}

// The decoder unpacker and the encoders are made when the program starts, so that their channels belong to no
// synctest bubble. An encoder allocates its tables at its first use.
var unpacker = func() *zstd.Decoder {
	r, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(dictionaryID, dictionary), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(err) // the options are constants
	}
	return r
}()

var flateReaders = sync.Pool{New: func() any { return flate.NewReaderDict(bytes.NewReader(nil), cardDictionary) }}

// pack appends the compressed form of a row's value to b. If the value should be stored unchanged, ok is false.
func pack(b []byte, in bucket, value []byte) (stored []byte, ok bool) {
	if packings[in].rows == noRows || len(value)-keptOf(in, value) < packFrom {
		return b, false
	}
	stored = compress(b, in, value)
	return stored, len(stored)-len(b) < len(value)
}

// compress appends the compressed value to b.
func compress(b []byte, in bucket, value []byte) []byte {
	kept := keptOf(in, value)
	rest, mark := value[kept:], packings[in].mark
	switch in {
	case audit:
		return shorten(append(append(b, mark), value[:kept]...), rest)
	case renderings:
		if split := splitBody(rest); split != nil {
			rest, mark = split, packedBody
		}
	}
	with := quick
	if packings[in].rows == allRows && len(rest) >= thoroughFrom {
		with = thorough
	}
	return with.EncodeAll(rest, append(append(b, mark), value[:kept]...))
}

// Unpack returns the value of a row. Unpack is for code that reads a file without [Open]. The arguments of Unpack are
// the row's bucket and the row's bytes, without the checksum.
func Unpack(name string, stored []byte) ([]byte, error) {
	in := bucket(slices.Index(bucketNames[:], name))
	if in >= bucketEnd {
		return stored, nil
	}
	return unpack(in, stored)
}

// unpack returns a row's value from its stored form.
func unpack(in bucket, stored []byte) ([]byte, error) {
	if packings[in].rows == noRows || len(stored) == 0 {
		return stored, nil
	}
	switch mark, rest := stored[0], stored[1:]; {
	case mark == short && in == audit:
		kept := keptOf(in, rest)
		return lengthen(rest[:kept:kept], rest[kept:])
	case mark == packings[in].mark, mark == packed && in == audit: // a few programs of version 8 wrote the mark packed in the bucket audit
		kept := keptOf(in, rest)
		return unpacker.DecodeAll(rest[kept:], rest[:kept:kept])
	case mark == packedBody && in == renderings:
		return joined(unpacker.DecodeAll(rest, nil))
	case mark == flateBody && in == renderings:
		return joined(unflate(rest))
	case mark == flatePacked && (in == renderings || in == auditPayloads):
		return unflate(rest)
	}
	return stored, nil
}

// keptOf returns how many bytes at the beginning of a value are not compressed. For an audit record, the leaf and the
// hash are not compressed, because hashes can't be compressed. For a guarded record, the version and the birth number
// are not compressed, because the program reads these numbers of every record when it examines the file.
func keptOf(in bucket, value []byte) int {
	switch {
	case in == audit:
		return min(auditHeader, len(value))
	case packings[in].rows == closedRecords:
		_, version := binary.Uvarint(value)
		_, birth := binary.Uvarint(value[max(0, version):])
		return max(0, version) + max(0, birth)
	}
	return 0
}

// numbersOf returns the version and the birth number of a stored record (see the package documentation). If the numbers
// can't be read, numbersOf returns zeros.
func numbersOf(stored []byte) (version, birth uint64) {
	if len(stored) > 0 && stored[0] == packedRecord {
		stored = stored[1:]
	}
	version, n := binary.Uvarint(stored)
	birth, _ = binary.Uvarint(stored[max(0, n):])
	return version, birth
}

func unflate(packed []byte) ([]byte, error) {
	r := flateReaders.Get().(io.ReadCloser)
	defer flateReaders.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(packed), cardDictionary); err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// valueOf returns the value of a row without verifying the row's checksum. A value that can't be unpacked is returned
// in its stored form.
func valueOf(in bucket, stored []byte) []byte {
	n := max(0, len(stored)-checksumSize)
	value, err := unpack(in, stored[:n:n])
	if err != nil {
		return stored[:n:n]
	}
	return value
}

var bodyField = []byte(`"body":"`)

// splitBody returns a rendering's record without its text, then a line break and the bytes of the text. splitBody
// returns nil if joinBody could not restore the record exactly.
func splitBody(js []byte) []byte {
	head, rest, _ := bytes.Cut(js, bodyField)
	text, tail, _ := bytes.Cut(rest, []byte(`"`))
	body, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil
	}
	split := bytes.Join([][]byte{head, bodyField, []byte(`"`), tail, []byte("\n"), body}, nil)
	if joined, err := joinBody(split); err != nil || !bytes.Equal(joined, js) {
		return nil
	}
	return split
}

func joined(split []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return joinBody(split)
}

// joinBody is the inverse of splitBody.
func joinBody(split []byte) ([]byte, error) {
	js, body, ok := bytes.Cut(split, []byte("\n"))
	head, tail, found := bytes.Cut(js, bodyField)
	if !ok || !found {
		return nil, errors.New("the record has no place for its text")
	}
	return bytes.Join([][]byte{head, bodyField, []byte(base64.StdEncoding.EncodeToString(body)), tail}, nil), nil
}

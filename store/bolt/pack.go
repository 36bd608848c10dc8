package bolt

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/base64"
	"errors"
	"io"
	"sync"
)

// The texts of cards are kept as long as the history, and cards are much alike. Rows with such texts are therefore
// compressed, with a dictionary of the text that all cards have in common. These rows never change, so each is
// compressed once.
var packedBuckets = [bucketEnd]bool{renderings: true, auditPayloads: true}

// dictionary must never change, because stored rows were compressed with it. A better dictionary needs new values for a
// value's first byte.
//
//go:embed dictionary.txt
var dictionary []byte

// The first byte of a compressed value. Other values begin with '{' (a record) or 0 (a payload).
const (
	packed     = 1
	packedBody = 2 // the bytes of the text follow the record, because base64, the form in the record, compresses badly
)

// packFrom is the minimum length in bytes of a value that is compressed: with shorter values too little is saved.
const packFrom = 256

var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriterDict(io.Discard, flate.DefaultCompression, dictionary)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

var unpackers = sync.Pool{New: func() any { return flate.NewReaderDict(bytes.NewReader(nil), dictionary) }}

// pack returns the value to store for a row's value.
func pack(in bucket, value []byte) []byte {
	if !packedBuckets[in] || len(value) < packFrom {
		return value
	}
	first := byte(packed)
	if split := splitBody(value); in == renderings && split != nil {
		first, value = packedBody, split
	}
	out := bytes.NewBuffer(append(make([]byte, 0, len(value)/2), first))
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(out)
	if _, err := w.Write(value); err != nil {
		panic(err) // writing to a bytes.Buffer can't fail
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// unpack returns a row's value from the stored one.
func unpack(in bucket, stored []byte) ([]byte, error) {
	if !packedBuckets[in] || len(stored) == 0 || stored[0] != packed && stored[0] != packedBody {
		return stored, nil
	}
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(stored[1:]), dictionary); err != nil {
		return nil, err
	}
	value, err := io.ReadAll(r)
	if err == nil && stored[0] == packedBody {
		value, err = joinBody(value)
	}
	return value, err
}

var bodyField = []byte(`"body":"`)

// splitBody returns a rendering's record without its text, then a line break and the bytes of the text. It returns nil
// if joinBody could not restore the record exactly.
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

// joinBody is the inverse of splitBody.
func joinBody(split []byte) ([]byte, error) {
	js, body, ok := bytes.Cut(split, []byte("\n"))
	head, tail, found := bytes.Cut(js, bodyField)
	if !ok || !found {
		return nil, errors.New("the record has no place for its text")
	}
	return bytes.Join([][]byte{head, bodyField, []byte(base64.StdEncoding.EncodeToString(body)), tail}, nil), nil
}

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// File is a non-text part of a run's result, such as an image or a document. A File can also be the full text of a
// result that was truncated for the model. The store writes a file once, in the transaction that ends the run, and
// keeps its bytes separately.
type File struct {
	Execution string    `json:"execution"`
	Index     int       `json:"index"` // from 0, in the order in which the run attached its files
	Name      string    `json:"name"`  // the name shown to people
	Type      string    `json:"type"`  // the media type as declared by the tool, not verified
	Size      int       `json:"size"`  // in bytes
	Hash      string    `json:"hash"`  // SHA-256 of the file's bytes, in hex
	Whole     bool      `json:"whole,omitempty"`
	At        time.Time `json:"at"`
}

// Of returns a copy of the File in which Size and Hash are set from data.
func (f File) Of(data []byte) File {
	sum := sha256.Sum256(data)
	f.Size, f.Hash = len(data), hex.EncodeToString(sum[:])
	return f
}

// Holds returns an error if data does not match the file's size and hash.
func (f File) Holds(data []byte) error {
	if is := f.Of(data); is.Size != f.Size || is.Hash != f.Hash {
		return fmt.Errorf("store: file %d of execution %q has the wrong size or hash: want %d bytes with %q, got %d with %q", f.Index, f.Execution, f.Size, f.Hash, is.Size, is.Hash)
	}
	return nil
}

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// File is a part of what a run brought back that is no text for the model: an image, a document, or the whole of a result of which the model was given the
// beginning. It is written once, with the end of its run, and its bytes lie beside it.
type File struct {
	Execution string    `json:"execution"`
	Index     int       `json:"index"` // from 0, in the order in which the run attached them
	Name      string    `json:"name"`  // as people should read it
	Type      string    `json:"type"`  // the media type, as the tool says; nothing vouches for it
	Size      int       `json:"size"`  // in bytes
	Hash      string    `json:"hash"`  // SHA-256 of its bytes, in hex
	Whole     bool      `json:"whole,omitempty"`
	At        time.Time `json:"at"`
}

// Of is the file with the size and the hash of its bytes.
func (f File) Of(data []byte) File {
	sum := sha256.Sum256(data)
	f.Size, f.Hash = len(data), hex.EncodeToString(sum[:])
	return f
}

// Holds says what is wrong where bytes are not the file's; nil: nothing.
func (f File) Holds(data []byte) error {
	if is := f.Of(data); is.Size != f.Size || is.Hash != f.Hash {
		return fmt.Errorf("store: file %d of execution %q says %d bytes with the hash %q; they are %d with %q", f.Index, f.Execution, f.Size, f.Hash, is.Size, is.Hash)
	}
	return nil
}

package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"countersign/agent/httptool"
	"countersign/agent/pins"
	"countersign/config"
	"countersign/config/check"
)

// Content has the content of the policy file, the policy's OpenAPI files and the lock file.
type Content struct {
	Policy Files  `json:"policy"`
	Pins   []byte `json:"pins"` // the content of the lock file; nil: there is no lock file
}

// Files are a policy file and the OpenAPI files that the policy names.
type Files struct {
	File []byte            `json:"file"`
	APIs map[string][]byte `json:"apis,omitempty"` // content of the OpenAPI files, by their names in the policy

	unreadable map[string]error // why an OpenAPI file could not be read, by name
}

// Digest identifies the content. Without OpenAPI files, Digest returns the hash of the policy file.
func (f Files) Digest() string {
	if len(f.APIs)+len(f.unreadable) == 0 {
		return config.Hash(f.File)
	}
	h := sha256.New()
	fmt.Fprintf(h, "policy %s\n", config.Hash(f.File))
	for _, name := range slices.Sorted(maps.Keys(f.APIs)) {
		fmt.Fprintf(h, "openapi %q %s\n", name, config.Hash(f.APIs[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(f.unreadable)) {
		fmt.Fprintf(h, "unreadable %q %q\n", name, f.unreadable[name].Error())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// PinsDigest identifies the pins. If there are no pins, PinsDigest is empty.
func (c Content) PinsDigest() string {
	if c.Pins == nil {
		return ""
	}
	return config.Hash(c.Pins)
}

// Parse parses a policy and its pins. The parameter name is the policy file's path. Paths in the policy are relative to
// the directory of the policy file. The errors are [countersign/config/yamldoc.Problems] and [LockError].
func (c Content) Parse(name string) (*config.File, pins.Lock, error) {
	file, err := check.Parse(name, c.Policy.File)
	if err != nil {
		return nil, pins.Lock{}, err
	}
	for i, api := range file.OpenAPI {
		data, ok := c.Policy.APIs[api.Name]
		switch why := c.Policy.unreadable[api.Name]; {
		case ok:
			file.OpenAPI[i].Data = append([]byte{}, data...)
		case why != nil:
			file.OpenAPI[i].Fault = why
		default:
			file.OpenAPI[i].Fault = errors.New("its content is not stored")
		}
	}
	var lock pins.Lock
	if c.Pins != nil {
		if lock, err = pins.Parse(pins.Beside(name), c.Pins); err != nil {
			return nil, lock, &LockError{err}
		}
	}
	return file, lock, nil
}

// Reader reads the files of a policy repeatedly. Reader parses the policy file only after a change of its content.
type Reader struct {
	Path string // path of the policy file

	last []byte
	apis []config.OpenAPI
}

// Policy reads the policy file and the OpenAPI files that the policy names. Policy returns an error only if the
// policy file can't be read.
func (r *Reader) Policy() (Files, error) {
	data, err := config.ReadFile(r.Path)
	if err != nil {
		return Files{}, err
	}
	return r.With(data), nil
}

// With returns the content of a policy file together with the OpenAPI files that the policy names.
func (r *Reader) With(policy []byte) Files {
	if r.last == nil || !bytes.Equal(policy, r.last) {
		r.last, r.apis = policy, nil
		if file, err := config.ParsePolicy(r.Path, policy); err == nil {
			r.apis = file.OpenAPI
		}
	}
	out := Files{File: policy}
	if len(r.apis) > 0 {
		out.APIs, out.unreadable = map[string][]byte{}, map[string]error{}
	}
	for _, api := range r.apis {
		if data, err := httptool.ReadFile(api.File); err != nil {
			out.unreadable[api.Name] = err
		} else {
			out.APIs[api.Name] = data
		}
	}
	return out
}

// Pins reads the lock file beside the policy file. If there is no lock file, or the policy is compiled in, Pins
// returns nil. An error is a [LockError].
func (r *Reader) Pins() ([]byte, error) {
	if r.Path == "" {
		return nil, nil
	}
	data, err := pins.Bytes(pins.Beside(r.Path))
	if err != nil {
		return nil, &LockError{err}
	}
	return data, nil
}

// Package pins stores the reviewed definition of every tool of an external source. The definitions are in
// countersign.lock, beside the policy file, with the bytes that the source sent. A definition that differs from the
// pin counts as an unreviewed tool.
//
// The file is JSON, in a form for people and for git. The tools are sorted by name, and each value has its own line.
// In a definition, spaces between tokens make no difference. Every other difference counts, such as another order of
// names, another notation of a number, or a duplicate name.
package pins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// FileName is the name of the lock file. The lock file is in the policy file's directory.
const FileName = "countersign.lock"

// Version is the version of the format.
const Version = 1

// ErrLock means that a lock file can't be used. The wrapping error says where the fault is and what to do.
var ErrLock = errors.New("the lock file can't be used")

// ErrDefinition means that a source's definition of a tool can't be pinned.
var ErrDefinition = errors.New("the definition can't be pinned")

// Pin is a reviewed definition of a tool.
type Pin struct {
	Tool       string          // the tool's name in the policy
	Source     string          // the tool's source in the policy file
	Hash       string          // hash of the definition; see [Hash]
	Definition json.RawMessage // the source's definition, without spaces between the tokens
	FirstSeen  time.Time       // when a tool with this name was first pinned
	PinnedAt   time.Time
	By         string // login name of the person who pinned the tool
}

// Lock is a lock file's content. The zero Lock has no pins.
type Lock struct {
	Pins []Pin // sorted by tool
}

// Of returns the pins of a source.
func (l Lock) Of(source string) []Pin {
	var out []Pin
	for _, p := range l.Pins {
		if p.Source == source {
			out = append(out, p)
		}
	}
	return out
}

// Tool returns a tool's pin.
func (l Lock) Tool(name string) (Pin, bool) {
	i, found := l.find(name)
	if !found {
		return Pin{}, false
	}
	return l.Pins[i], true
}

func (l Lock) find(tool string) (int, bool) {
	return slices.BinarySearchFunc(l.Pins, tool, func(p Pin, tool string) int { return strings.Compare(p.Tool, tool) })
}

// With returns the lock with the pin added. If the tool is already pinned, the new pin replaces the old pin, with the
// FirstSeen of the old pin.
func (l Lock) With(p Pin) Lock {
	out := Lock{Pins: slices.Clone(l.Pins)}
	i, found := l.find(p.Tool)
	if !found {
		out.Pins = slices.Insert(out.Pins, i, p)
		return out
	}
	p.FirstSeen = l.Pins[i].FirstSeen
	out.Pins[i] = p
	return out
}

// Without returns the lock without a tool's pin.
func (l Lock) Without(tool string) Lock {
	i, found := l.find(tool)
	if !found {
		return l
	}
	return Lock{Pins: slices.Delete(slices.Clone(l.Pins), i, i+1)}
}

// Make pins a definition. Make truncates the time to seconds.
func Make(tool, source string, definition json.RawMessage, by string, now time.Time) (Pin, error) {
	compact, err := Compact(definition)
	if err != nil {
		return Pin{}, fmt.Errorf("%s: %w", tool, err)
	}
	at := now.UTC().Truncate(time.Second)
	return Pin{Tool: tool, Source: source, Hash: hashOf(compact), Definition: compact, FirstSeen: at, PinnedAt: at, By: by}, nil
}

// Compact removes the spaces between a definition's tokens. Compact changes nothing else: it keeps the order of
// names, duplicate names, and the notation of numbers and escapes.
func Compact(definition json.RawMessage) (json.RawMessage, error) {
	out, err := jsontext.AppendFormat(nil, definition, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: it is not valid JSON: %s", ErrDefinition, plain(err))
	case out[0] != '{':
		return nil, fmt.Errorf("%w: it is not a JSON object", ErrDefinition)
	}
	return out, nil
}

// Hash returns a definition's hash. Two definitions with the same hash can differ only in the spaces between their
// tokens.
func Hash(definition json.RawMessage) (string, error) {
	compact, err := Compact(definition)
	if err != nil {
		return "", err
	}
	return hashOf(compact), nil
}

func hashOf(compact json.RawMessage) string {
	h := sha256.New()
	h.Write([]byte("countersign/definition/v1\x00"))
	h.Write(compact)
	return hashPrefix + hex.EncodeToString(h.Sum(nil))
}

const hashPrefix = "sha256:"

// Short returns a short form of a hash, which people can compare.
func Short(hash string) string {
	hash = strings.TrimPrefix(hash, hashPrefix)
	return hash[:min(len(hash), 12)]
}

func plain(err error) string { return strings.TrimPrefix(err.Error(), "jsontext: ") }

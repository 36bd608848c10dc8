// Package pins keeps what the operator looked at of every tool that somebody else's server offers: countersign.lock, the file beside the policy. Its
// definitions are the servers' own bytes. A tool whose server says one byte more or less than what is pinned is another tool, which nobody has looked at yet.
//
// The file is JSON that is laid out for reading and for git: one tool after the other by name, one line for each thing that can change. Spaces between the tokens of a
// definition are not a part of it; everything else is, down to the order of names, how a number is written, and what stands twice.
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

// FileName is the name of the lock file. It lies beside the policy file.
const FileName = "countersign.lock"

// Version is the only version of the format so far.
const Version = 1

// ErrLock says that a lock file can't be used. The wrapping error says where and what to do.
var ErrLock = errors.New("the lock file can't be used")

// ErrDefinition says that what a source said of a tool can't be pinned.
var ErrDefinition = errors.New("the definition can't be pinned")

// Pin is one tool as the operator looked at it.
type Pin struct {
	Tool       string          // as the policy names it
	Source     string          // the source of the policy file that it came from
	Hash       string          // of the definition; see [Hash]
	Definition json.RawMessage // as its source gave it, without spaces between the tokens
	FirstSeen  time.Time       // when a tool of that name was pinned first
	PinnedAt   time.Time
	By         string // the login of whoever pinned it
}

// Lock is a lock file's content. The zero Lock has no pins.
type Lock struct {
	Pins []Pin // by tool
}

// Of lists the pins of a source.
func (l Lock) Of(source string) []Pin {
	var out []Pin
	for _, p := range l.Pins {
		if p.Source == source {
			out = append(out, p)
		}
	}
	return out
}

// Tool finds a tool's pin.
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

// With is the lock with a tool pinned, in place of an earlier pin of that tool if there is one. When the tool was first seen stays.
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

// Without is the lock without a tool's pin.
func (l Lock) Without(tool string) Lock {
	i, found := l.find(tool)
	if !found {
		return l
	}
	return Lock{Pins: slices.Delete(slices.Clone(l.Pins), i, i+1)}
}

// Make pins a definition. The time is kept to the second.
func Make(tool, source string, definition json.RawMessage, by string, now time.Time) (Pin, error) {
	compact, err := Compact(definition)
	if err != nil {
		return Pin{}, fmt.Errorf("%s: %w", tool, err)
	}
	at := now.UTC().Truncate(time.Second)
	return Pin{Tool: tool, Source: source, Hash: hashOf(compact), Definition: compact, FirstSeen: at, PinnedAt: at, By: by}, nil
}

// Compact is a definition without the spaces between its tokens. Every other byte stays: the order of names, names that stand twice, how numbers and escapes are written.
func Compact(definition json.RawMessage) (json.RawMessage, error) {
	out, err := jsontext.AppendFormat(nil, definition, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: it is not valid JSON: %s", ErrDefinition, plain(err))
	case out[0] != '{':
		return nil, fmt.Errorf("%w: it is no JSON object", ErrDefinition)
	}
	return out, nil
}

// Hash names a definition: two definitions with the same hash are the same but for the spaces between their tokens.
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

// Short is a hash as people compare it.
func Short(hash string) string {
	hash = strings.TrimPrefix(hash, hashPrefix)
	return hash[:min(len(hash), 12)]
}

func plain(err error) string { return strings.TrimPrefix(err.Error(), "jsontext: ") }

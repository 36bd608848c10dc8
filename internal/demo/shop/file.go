package shop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// format is the version of the file. A file with another version is an error.
const format = 1

// load reads the file. If there is no file, found is false.
func load(path string) (state State, found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, fmt.Errorf("open the shop: %w", err)
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &version); err != nil || version.Format < 1 {
		return State{}, false, problem(ErrForeignFile, "%s is not a file of the sample shop: name another one, or move it away to start with a fresh shop.", path)
	}
	if version.Format > format {
		return State{}, false, problem(ErrForeignFile, "%s was written by a newer version (format %d, this one reads up to %d): use that version, or move the file away to start with a fresh shop.", path, version.Format, format)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&state); err != nil {
		return State{}, false, problem(ErrForeignFile, "%s is damaged (%v): move it away to start with a fresh shop.", path, err)
	}
	for key, run := range state.Runs {
		if run.Entry < 1 || run.Entry > len(state.Ledger) {
			return State{}, false, problem(ErrForeignFile, "%s is damaged (key %s has no ledger entry): move it away to start with a fresh shop.", path, key)
		}
	}
	if state.Runs == nil {
		state.Runs = map[string]Run{}
	}
	return state, true, nil
}

// save replaces the file atomically. After a crash, the file is the old file or the new one.
func save(path string, data []byte) error {
	// The temporary file has a fixed name, so that it overwrites the file that a killed process left.
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The directory is synced, so that the rename also survives a power failure.
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

func encode(state State) []byte {
	data, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		panic("shop: can't encode the state: " + err.Error()) // State holds plain values only
	}
	return data
}

func decode(data []byte) State {
	var state State
	if err := json.Unmarshal(data, &state); err != nil {
		panic("shop: state that can't be read back: " + err.Error()) // data comes from encode
	}
	if state.Runs == nil {
		state.Runs = map[string]Run{}
	}
	return state
}

package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Profile says which people decide calls.
type Profile string

// The profiles.
const (
	Control Profile = "control" // other people decide
	Comfort Profile = "comfort" // the person who uses the agent decides, on a phone
)

// Config is the configuration of the hooks on a machine. It is read from a file and from the environment. It is never
// read from the command line, because other users of the machine can read command lines.
type Config struct {
	Address    string  `json:"address"`      // address of the gateway
	TokenFile  string  `json:"token_file"`   // path of the file with the token, relative to the folder of the configuration file
	Profile    Profile `json:"profile"`      // which people decide calls; empty: control
	OnBehalfOf string  `json:"on_behalf_of"` // Slack user of this machine; this user can't decide the calls
	State      string  `json:"state"`        // folder for the data that hooks keep between events

	Path  string `json:"-"` // path of the configuration file
	Token string `json:"-"`
}

// ConfigPath returns the path of the configuration file.
func ConfigPath(getenv func(string) string) (string, error) {
	if path := getenv("COUNTERSIGN_HOOK_CONFIG"); path != "" {
		return path, nil
	}
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("neither COUNTERSIGN_HOOK_CONFIG nor HOME is set")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "countersign", "hook.json"), nil
}

// ReadConfig reads the configuration and the token.
func ReadConfig(getenv func(string) string) (Config, error) {
	path, err := ConfigPath(getenv)
	if err != nil {
		return Config{}, err
	}
	c := Config{Path: path}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && getenv("COUNTERSIGN_HOOK_CONFIG") == "": // all settings may be in the environment
	case err != nil:
		return c, fmt.Errorf("the configuration can't be read: %w", err)
	default:
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c); err != nil {
			return c, fmt.Errorf("%s is not valid: %w", path, err)
		}
	}
	c.Address = cmp.Or(getenv("COUNTERSIGN_HOOK_ADDRESS"), c.Address)
	if c.TokenFile != "" && !filepath.IsAbs(c.TokenFile) {
		c.TokenFile = filepath.Join(filepath.Dir(path), c.TokenFile)
	}
	c.TokenFile = cmp.Or(getenv("COUNTERSIGN_HOOK_TOKEN_FILE"), c.TokenFile)
	c.Profile = cmp.Or(Profile(getenv("COUNTERSIGN_HOOK_PROFILE")), c.Profile, Control)
	switch {
	case c.Address == "":
		return c, fmt.Errorf(`the gateway's address is missing; write "address" in %s, or set COUNTERSIGN_HOOK_ADDRESS`, path)
	case c.TokenFile == "":
		return c, fmt.Errorf(`the file with the token is missing; write "token_file" in %s, or set COUNTERSIGN_HOOK_TOKEN_FILE`, path)
	case c.Profile != Control && c.Profile != Comfort:
		return c, fmt.Errorf("the profile %q is neither control nor comfort", c.Profile)
	case c.Profile == Comfort && c.OnBehalfOf != "":
		return c, errBarred
	}
	if c.Token, err = readToken(c.TokenFile); err != nil {
		return c, err
	}
	c.State, err = statePath(getenv, c.State)
	return c, err
}

// readToken reads a token from a file that only its owner can read.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("the token can't be read: %w", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others can read the token in %s; run: chmod 600 %s", path, path)
	case info.Size() > 4096:
		return "", fmt.Errorf("the file %s is larger than 4,096 bytes, so it can't be a token file", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the token can't be read: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// statePath returns the path of the folder for the state.
func statePath(getenv func(string) string, configured string) (string, error) {
	if dir := cmp.Or(getenv("COUNTERSIGN_HOOK_STATE"), configured); dir != "" {
		return dir, nil
	}
	if dir := getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "countersign", "hooks"), nil
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "countersign", "hooks"), nil
	}
	return "", errors.New("neither COUNTERSIGN_HOOK_STATE nor HOME is set")
}

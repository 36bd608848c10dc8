package wire

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// NewID returns a random id like Slack's: a prefix and ten letters and digits.
func NewID(prefix string) string {
	var raw [8]byte
	rand.Read(raw[:])
	return prefix + base32.StdEncoding.EncodeToString(raw[:])[:10]
}

// NewSecret returns an unguessable name for a URL. The URL works without any other authentication.
func NewSecret() string {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

// NewUUID returns a random identifier in the form of a UUID.
func NewUUID() string {
	s := NewSecret()
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// NewHash returns a new value for the field hash of a view. The value is random, and replaces the old value after every
// change of the view.
func NewHash(now time.Time) string {
	return fmt.Sprintf("%d.%s", now.Unix(), NewSecret()[:8])
}

// FormatTS writes microseconds since the epoch as a message's ts.
func FormatTS(micros int64) string {
	return fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6)
}

// ParseTS reads a message's ts as microseconds since the epoch. ParseTS returns false if the ts is malformed.
func ParseTS(ts string) (int64, bool) {
	seconds, fraction, found := strings.Cut(ts, ".")
	if found && len(fraction) > 6 {
		return 0, false
	}
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || s < 0 || s > 1e11 {
		return 0, false
	}
	micros := s * 1e6
	if fraction != "" {
		f, err := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
		if err != nil || f < 0 {
			return 0, false
		}
		micros += f
	}
	return micros, true
}

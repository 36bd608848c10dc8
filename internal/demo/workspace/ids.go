package workspace

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// newID makes an id such as Slack's: a prefix and ten letters and digits.
func newID(prefix string) string {
	var raw [8]byte
	rand.Read(raw[:])
	return prefix + base32.StdEncoding.EncodeToString(raw[:])[:10]
}

// newSecret makes a name that nobody can guess, for URLs that need no other key.
func newSecret() string {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

func newUUID() string {
	s := newSecret()
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// newHash is a view's hash: it differs after every change.
func newHash(now time.Time) string {
	return fmt.Sprintf("%d.%s", now.Unix(), newSecret()[:8])
}

// formatTS writes microseconds since the epoch the way Slack writes a message's ts.
func formatTS(micros int64) string {
	return fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6)
}

// parseTS reads a ts; "now"-like and malformed values are not one.
func parseTS(ts string) (int64, bool) {
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

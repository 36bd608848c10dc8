package settings

import (
	"time"

	"countersign/store"
)

// SlackToken is the setting with the bot token of an app with token rotation. Package bot/rotation writes it.
type SlackToken struct {
	Team string `json:"team"` // the workspace and the user of the bot
	User string `json:"user"`
	// Sealed has the bot token and the refresh token, encrypted with a key that is not in the store.
	Sealed []byte `json:"sealed"`
	// Given lists the digests of the refresh tokens that operators gave to the bot and the bot has used, oldest first.
	Given   []string  `json:"given"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// ReadSlackToken reads the token, or the zero value.
func ReadSlackToken(r store.Reader) (t SlackToken, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingSlackToken, &t)
	return t, s, err
}

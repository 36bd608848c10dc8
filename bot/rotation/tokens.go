package rotation

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// tokens are the stored tokens, decrypted. If they can't be decrypted, pair is empty.
type tokens struct {
	settings.SlackToken
	pair
	lost   bool   // the tokens come from memory, because the row is missing, damaged, or an older one for another secret
	before []byte // the stored tokens that these tokens replace, encrypted
}

// pair is a bot token with the refresh token for its renewal.
type pair struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh"`
}

func (t tokens) valid(now time.Time) bool { return t.Access != "" && now.Before(t.Expires) }

// part returns the time at which the fraction n/m of the token's lifetime has passed.
func (t tokens) part(n, m time.Duration) time.Time {
	return t.Issued.Add(t.Expires.Sub(t.Issued) * n / m)
}

// digest identifies a refresh token that must not be stored.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// BotToken decrypts the bot token in a row of the store. If the row has no token that the app can decrypt, there are
// two cases. If the operator's refresh token was not used yet, the bot can get its first token, and the result is
// empty. Otherwise the error wraps ErrRefused.
func (a App) BotToken(row settings.SlackToken) (string, error) {
	token := a.open(row.Sealed).Access
	if token == "" && slices.Contains(row.Given, digest(a.RefreshToken)) {
		return "", errUndecrypted
	}
	return token, nil
}

// read reads the stored tokens. A damaged row counts as missing. If the row has no tokens for this app, read returns
// the tokens in memory. If the row is newer than the tokens in memory, another process with other credentials has
// written the row. In this case, read returns the tokens without a refresh token, so that this replica does not replace
// the row.
func (k *Keeper) read(ctx context.Context) (t tokens, err error) {
	err = k.o.Store.View(ctx, func(r store.Reader) (err error) {
		t.SlackToken, _, err = settings.ReadSlackToken(r)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return tokens{}, err
	}
	k.mu.Lock()
	app, current := k.app, k.current
	k.mu.Unlock()
	if t.pair = app.open(t.Sealed); t.Access == "" && current.Access != "" {
		current.Sealed, current.lost = t.Sealed, !t.Issued.After(current.Issued)
		if !current.lost {
			current.Refresh = ""
		}
		current.Given = slices.Clone(current.Given)
		for _, given := range t.Given {
			if !slices.Contains(current.Given, given) {
				current.Given = append(current.Given, given)
			}
		}
		return current, nil
	}
	return t, nil
}

// readToReplace reads the row so that PutSetting can replace it. A damaged row counts as missing.
func readToReplace(tx store.Tx) (settings.SlackToken, store.Setting, error) {
	row, s, err := settings.ReadSlackToken(tx)
	if !errors.Is(err, store.ErrDamaged) {
		return row, s, err
	}
	s = store.Setting{Key: store.SettingSlackToken}
	if aside, ok := tx.(store.SetAside); ok { // PutSetting does not replace a damaged row
		_, _, err := aside.SetAside("settings", s.Key)
		return row, s, err
	}
	return row, s, nil
}

// tryStore writes the row unchanged. An exchange uses the refresh token up, so it needs a store that accepts the new
// tokens.
func (k *Keeper) tryStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := k.o.Store.Update(ctx, func(tx store.Tx) error {
		row, s, err := readToReplace(tx)
		if err != nil {
			return err
		}
		if s.Value, err = json.Marshal(row); err != nil {
			return err
		}
		return tx.PutSetting(s)
	})
	if err != nil {
		return fmt.Errorf("the bot token is not renewed, because the store refuses writes: %w", err)
	}
	return nil
}

// errReplaced says that another process has replaced the stored tokens.
var errReplaced = errors.New("another process has renewed the bot token")

// save stores the unsaved tokens. If another process has renewed the same tokens meanwhile, save returns the tokens of
// that process. This can happen, because Slack accepts a refresh token twice within a short time. save continues when
// ctx ends.
func (k *Keeper) save(ctx context.Context) (tokens, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	t := *k.unsaved
	k.mu.Lock()
	app := k.app
	k.mu.Unlock()
	var err error
	if t.Sealed, err = app.seal(t.pair); err != nil {
		return t, err
	}
	value, err := json.Marshal(t.SlackToken)
	if err != nil {
		return t, err
	}
	err = k.o.Store.Update(ctx, func(tx store.Tx) error {
		row, s, err := readToReplace(tx)
		if err != nil {
			return err
		}
		if !bytes.Equal(row.Sealed, t.before) && len(row.Given) >= len(t.Given) {
			return errReplaced
		}
		s.Value = value
		return tx.PutSetting(s)
	})
	if errors.Is(err, errReplaced) {
		k.unsaved = nil
		return k.read(ctx)
	}
	if err != nil {
		return t, fmt.Errorf("the renewed bot token can't be stored: %w", err)
	}
	k.unsaved = nil
	k.o.Log.InfoContext(ctx, "the bot token was renewed", "expires", formatTime(t.Expires))
	return t, nil
}

// seal encrypts tokens with a key that is derived from the client secret.
func (a App) seal(p pair) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	c, err := a.cipher()
	if err != nil {
		return nil, err
	}
	return c.Seal(nil, nil, text, nil), nil
}

// open decrypts tokens. If they were encrypted for another app or with another client secret, open returns empty
// tokens.
func (a App) open(sealed []byte) (p pair) {
	c, err := a.cipher()
	if err != nil {
		return pair{}
	}
	text, err := c.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(text, &p) != nil {
		return pair{}
	}
	return p
}

func (a App) cipher() (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(a.ClientSecret), nil, "countersign bot token of "+a.ClientID, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

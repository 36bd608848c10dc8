package workspace

import (
	"crypto/rand"
	"strings"
	"time"
)

// Slack's times for token rotation. Slack documents the lifetime of a token, but not the grace time of a used refresh
// token, so the grace time is our own.
const (
	tokenLife    = 12 * time.Hour
	refreshGrace = 10 * time.Second
	maxTokens    = 2 // maximum number of valid tokens; older tokens are revoked
)

// rotation has the bot tokens of an app with token rotation. The tokens live in memory only.
type rotation struct {
	*core
	issued  []expiringToken      // the issued tokens, the oldest first
	refresh map[string]time.Time // by refresh token: the time at which the used token is revoked; zero: the token is unused
}

// expiringToken is a bot token that Slack has issued.
type expiringToken struct {
	token   string
	expires time.Time
	revoked bool
}

func newRotation(k *core) *rotation {
	r := &rotation{core: k, refresh: map[string]time.Time{}}
	if first := k.app.Rotation.RefreshToken; first != "" {
		r.refresh[first] = time.Time{}
	}
	return r
}

// refuses returns the error code with which Slack refuses a bot token. known is false if Slack has not issued the
// token.
func (r *rotation) refuses(token string) (code string, known bool) {
	for _, t := range r.issued {
		switch {
		case t.token != token:
		case t.revoked:
			return "token_revoked", true
		case !r.cfg.Now().Before(t.expires):
			return "token_expired", true
		default:
			return "", true
		}
	}
	return "", false
}

// newRefreshToken makes an unused refresh token.
func (r *rotation) newRefreshToken() string {
	token := "xoxe-1-" + rand.Text()
	r.refresh[token] = time.Time{}
	return token
}

// access exchanges a refresh token for a new bot token and a new refresh token. The used refresh token is revoked after
// a short time. The earlier bot token stays valid until it expires, or until there are too many tokens.
func (r *rotation) access(c *call) (object, *apiError) {
	app, now := r.app.Rotation, r.cfg.Now()
	switch until, known := r.refresh[c.text("refresh_token")]; {
	case app.ClientID == "" || c.text("client_id") != app.ClientID:
		return nil, refuse("invalid_client_id")
	case c.text("client_secret") != app.ClientSecret:
		return nil, refuse("bad_client_secret")
	case c.text("grant_type") != "refresh_token":
		return nil, refuse("invalid_grant_type")
	case !known || !until.IsZero() && now.After(until):
		return nil, refuse("invalid_refresh_token")
	case until.IsZero():
		r.refresh[c.text("refresh_token")] = now.Add(refreshGrace)
	}
	access, refresh := "xoxe.xoxb-1-"+rand.Text(), r.newRefreshToken()
	r.issued = append(r.issued, expiringToken{token: access, expires: now.Add(tokenLife)})
	active := 0
	for i := len(r.issued) - 1; i >= 0; i-- {
		if t := &r.issued[i]; !t.revoked && now.Before(t.expires) {
			active++
			t.revoked = active > maxTokens
		}
	}
	return object{
		"access_token": access, "refresh_token": refresh, "expires_in": int(tokenLife / time.Second), "token_type": "bot",
		"scope": strings.Join(r.app.Scopes, ","), "bot_user_id": r.app.BotUser, "app_id": r.app.ID, "enterprise": nil, "is_enterprise_install": false,
		"team": object{"id": r.team.ID, "name": r.team.Name},
	}, nil
}

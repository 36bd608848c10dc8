package workspace

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

// rotating switches token rotation on.
func rotating(c *Config) {
	c.Seed.App.BotTokens = nil
	c.Seed.App.Rotation = SeedRotation{ClientID: "1.2", ClientSecret: "secret", RefreshToken: "xoxe-1-first"}
}

// exchange exchanges a refresh token, and returns Slack's error code.
func (b *harness) exchange(id, secret, refresh string) (*slack.OAuthV2Response, string) {
	b.t.Helper()
	r, err := slack.RefreshOAuthV2TokenContext(context.Background(), b.http.Client(), id, secret, refresh, slack.OAuthOptionAPIURL(b.http.URL+"/api/"))
	var answer slack.SlackErrorResponse
	if errors.As(err, &answer) {
		return nil, answer.Err
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r, ""
}

// accepts checks the answer to a bot token.
func (b *harness) accepts(token, want string) {
	b.t.Helper()
	_, err := slack.New(token, slack.OptionAPIURL(b.http.URL+"/api/")).AuthTest()
	var answer slack.SlackErrorResponse
	if errors.As(err, &answer); answer.Err != want {
		b.t.Errorf("Slack answers %q (%v), want %q", answer.Err, err, want)
	}
}

// A token expires after 12 hours. A refresh token can be used once, and again for a short time. Only two tokens are
// valid.
func TestTokenRotation(t *testing.T) {
	b := newHarness(t, rotating)
	for _, c := range []struct{ id, secret, refresh, want string }{
		{"9.9", "secret", "xoxe-1-first", "invalid_client_id"}, {"1.2", "wrong", "xoxe-1-first", "bad_client_secret"},
		{"1.2", "secret", "xoxe-1-other", "invalid_refresh_token"},
	} {
		if _, code := b.exchange(c.id, c.secret, c.refresh); code != c.want {
			t.Errorf("%+v: %q", c, code)
		}
	}
	first, _ := b.exchange("1.2", "secret", "xoxe-1-first")
	if first.ExpiresIn != 43200 || first.TokenType != "bot" || first.BotUserID != "U0BOT" || first.Team.ID != "T0001" {
		t.Errorf("the answer is %+v", first)
	}
	b.accepts(first.AccessToken, "")
	b.accepts("xoxb-unknown", "invalid_auth")
	b.clock.advance(6 * time.Hour)
	second, _ := b.exchange("1.2", "secret", first.RefreshToken)
	b.accepts(first.AccessToken, "")
	b.clock.advance(refreshGrace)
	again, _ := b.exchange("1.2", "secret", first.RefreshToken)
	b.accepts(first.AccessToken, "token_revoked") // the third token revokes the first one
	b.accepts(second.AccessToken, "")
	b.accepts(again.AccessToken, "")
	b.clock.advance(time.Second)
	if _, code := b.exchange("1.2", "secret", first.RefreshToken); code != "invalid_refresh_token" {
		t.Errorf("a used refresh token: %q", code)
	}
	b.clock.advance(12*time.Hour - time.Second)
	b.accepts(again.AccessToken, "token_expired")
	third, _ := b.exchange("1.2", "secret", again.RefreshToken)
	b.accepts(third.AccessToken, "")
	next := b.srv.IssueRefreshToken()
	b.srv.RevokeRefreshTokens()
	for _, token := range []string{third.RefreshToken, next} {
		if _, code := b.exchange("1.2", "secret", token); code != "invalid_refresh_token" {
			t.Errorf("a revoked refresh token: %q", code)
		}
	}
}

// An app without token rotation can't exchange a token.
func TestNoTokenRotation(t *testing.T) {
	b := newHarness(t)
	if _, code := b.exchange("1.2", "secret", "xoxe-1-first"); code != "invalid_client_id" {
		t.Errorf("Slack answers %q", code)
	}
	seed := OpenSeed()
	seed.App.Rotation.ClientID = "1.2"
	if seed.Validate() == nil {
		t.Error("a seed with only a client_id is valid")
	}
}

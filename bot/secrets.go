package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/bot/slackapi"
)

// Secrets holds the secrets that Slack gave to the app. The bot can get new secrets while it runs.
type Secrets struct {
	BotToken      string // xoxb-…
	AppToken      string // xapp-…, for Socket Mode
	SigningSecret string // secret with which Slack signs its requests over HTTP
}

// ErrOtherApp says that a token belongs to another app or workspace, so it can't replace a token of this bot.
var ErrOtherApp = errors.New("the token belongs to another app or workspace")

// Renew replaces the bot's secrets. An empty secret stays as it is. If the bot token is new, Renew first checks the token with Slack. Slack must accept
// the token, and the token must belong to the same bot. An error that wraps ErrToken or ErrOtherApp is final. After any
// other error, Renew can be called again.
func (b *Bot) Renew(ctx context.Context, s Secrets) error {
	b.renewing.Lock()
	defer b.renewing.Unlock()
	now := *b.secrets.Load()
	s.BotToken, s.AppToken = cmp.Or(s.BotToken, now.BotToken), cmp.Or(s.AppToken, now.AppToken)
	s.SigningSecret = cmp.Or(s.SigningSecret, now.SigningSecret)
	if s.AppToken != now.AppToken && appOf(s.AppToken) != appOf(now.AppToken) {
		return fmt.Errorf("SLACK_APP_TOKEN can't be used: %w", ErrOtherApp)
	}
	if s.BotToken != now.BotToken {
		if err := b.checkSameBot(ctx, s.BotToken); err != nil {
			return fmt.Errorf("SLACK_BOT_TOKEN can't be used: %w", err)
		}
	}
	b.secrets.Store(&s)
	b.api.SetTokens(s.BotToken, s.AppToken)
	return nil
}

// checkSameBot checks that a token belongs to this bot.
func (b *Bot) checkSameBot(ctx context.Context, token string) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	a, err := slack.New(token, slack.OptionHTTPClient(b.HTTP), slack.OptionAPIURL(b.APIURL)).AuthTestContext(ctx)
	switch code := slackapi.ErrorCode(err); {
	case slackapi.IsTokenRefusal(code):
		return fmt.Errorf("%w (%s)", ErrToken, code)
	case err != nil:
		return fmt.Errorf("auth.test: %w", slackapi.WithDelay(err))
	case a.UserID != me.User || a.TeamID != me.Team:
		return ErrOtherApp
	}
	return nil
}

// appOf returns the id of the app in an app-level token: xapp-1-APP-….
func appOf(token string) string {
	parts := strings.SplitN(token, "-", 4)
	if len(parts) < 4 {
		return ""
	}
	return parts[2]
}

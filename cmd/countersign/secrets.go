package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"countersign/bot"
	"countersign/bot/rotation"
	"countersign/config"
	"countersign/config/yamldoc"
	"countersign/internal/redact"
)

// secretPoll is the time between two reads of the files with the secrets.
const secretPoll = 2 * time.Second

// secrets keeps the secrets of a running bot up to date with their files. A secret that is set in the environment
// itself can't change.
type secrets struct {
	renewBot func(context.Context, bot.Secrets) error
	renewKey func(string)       // replaces the model's key
	renewApp func(rotation.App) // replaces the credentials for token rotation; nil: the app has no token rotation
	log      *slog.Logger

	mu      sync.Mutex
	used    config.Env
	seen    secretValues // the values that the files had at the last read
	refused secretValues // values that Slack refused; reread tries these values again only if whole is true
	told    string       // the error that was logged last
}

// secretValues are the secrets that can change while the bot runs.
type secretValues struct {
	slack    bot.Secrets  // without the bot token if package rotation renews it
	app      rotation.App // zero if the app has no token rotation
	modelKey string
}

func valuesOf(env config.Env) secretValues {
	v := secretValues{
		slack:    bot.Secrets{BotToken: env.BotToken.Reveal(), AppToken: env.AppToken.Reveal(), SigningSecret: env.SigningSecret.Reveal()},
		app:      appOf(env),
		modelKey: env.ModelKey.Reveal(),
	}
	if env.Rotation.On() {
		v.slack.BotToken = ""
	}
	return v
}

// The method "changed" lists the variables whose values differ.
func (v secretValues) changed(now secretValues) (names []string) {
	for _, s := range []struct{ name, old, now string }{
		{"SLACK_BOT_TOKEN", v.slack.BotToken, now.slack.BotToken}, {"SLACK_APP_TOKEN", v.slack.AppToken, now.slack.AppToken},
		{"SLACK_SIGNING_SECRET", v.slack.SigningSecret, now.slack.SigningSecret}, {"OPENAI_API_KEY", v.modelKey, now.modelKey},
		{"SLACK_CLIENT_ID", v.app.ClientID, now.app.ClientID}, {"SLACK_CLIENT_SECRET", v.app.ClientSecret, now.app.ClientSecret},
		{"SLACK_REFRESH_TOKEN", v.app.RefreshToken, now.app.RefreshToken},
	} {
		if s.old != s.now {
			names = append(names, s.name)
		}
	}
	return names
}

// watch reads the secret files every few seconds, and immediately on SIGHUP, until ctx ends.
func (s *secrets) watch(ctx context.Context) error {
	if len(s.used.SecretFiles) == 0 {
		return nil
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(secretPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			s.reread(ctx, true)
		case <-tick.C:
			s.reread(ctx, false)
		}
	}
}

// reread reads the secrets in the files and uses them. It reports whether new secrets are now in use. If the parameter
// whole is true, the files are known to be complete. If whole is false, two reads in a row must find the same values,
// because the first half of a key may look like a key.
func (s *secrets) reread(ctx context.Context, whole bool) (renewed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.used.SecretFiles) == 0 {
		return false
	}
	env, err := config.ReadEnv(config.Serve)
	if err != nil {
		s.tell(problems(err).Error())
		return false
	}
	now, before := valuesOf(env), valuesOf(s.used)
	complete := whole || now == s.seen
	s.seen = now
	names := before.changed(now)
	if len(names) == 0 {
		s.told = ""
		return false
	}
	if !complete || now == s.refused && !whole {
		return false
	}
	redact.Secrets(now.slack.BotToken, now.slack.AppToken, now.slack.SigningSecret, now.app.ClientSecret, now.app.RefreshToken, now.modelKey)
	if now.slack != before.slack {
		if err := s.renewBot(ctx, now.slack); err != nil {
			if errors.Is(err, bot.ErrToken) || errors.Is(err, bot.ErrOtherApp) {
				s.refused = now
			}
			s.tell(err.Error())
			return false
		}
	}
	if now.app != before.app && s.renewApp != nil {
		s.renewApp(now.app)
	}
	if now.modelKey != before.modelKey {
		s.renewKey(now.modelKey)
	}
	s.used, s.told = env, ""
	s.log.InfoContext(ctx, "secrets changed in their files, and the new ones are used", "variables", strings.Join(names, ", "))
	return true
}

// tell logs an error. If the error is the same as the last logged error, tell does not log it.
func (s *secrets) tell(why string) {
	if why != s.told {
		s.told = why
		s.log.Error("a secret changed in its file and can't be used; the previous one stays in use", "error", why)
	}
}

// The function "problems" returns the problems of an environment.
func problems(err error) (out yamldoc.Problems) {
	if !errors.As(err, &out) {
		return yamldoc.Problems{{Message: err.Error()}}
	}
	return slices.Clone(out)
}

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
	refusal string       // why Slack refused them
	told    string       // the reasons that were logged last
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

// reread reads the secrets in the files and uses them. If a secret can't be read, the previous one stays in use, and
// the other secrets are renewed. It reports whether new secrets are now in use. If the parameter whole is true, the
// files are known to be complete. If whole is false, two reads in a row must find the same values, because the first
// half of a key may look like a key.
func (s *secrets) reread(ctx context.Context, whole bool) (renewed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.used.SecretFiles) == 0 {
		return false
	}
	env, err := config.ReadEnv(config.Serve)
	var wrong yamldoc.Problems
	if err != nil && !errors.As(err, &wrong) {
		s.tell(err.Error())
		return false
	}
	env = withUsed(env, s.used, wrong)
	now, before := valuesOf(env), valuesOf(s.used)
	complete := whole || now == s.seen
	s.seen = now
	names := before.changed(now)
	switch {
	case len(names) == 0:
		s.tell(wrong.Error())
		return false
	case !complete:
		return false
	case now == s.refused && !whole:
		s.tell(wrong.Error(), s.refusal)
		return false
	}
	redact.Secrets(now.slack.BotToken, now.slack.AppToken, now.slack.SigningSecret, now.app.ClientSecret, now.app.RefreshToken, now.modelKey)
	if now.slack != before.slack {
		if err := s.renewBot(ctx, now.slack); err != nil {
			if errors.Is(err, bot.ErrToken) || errors.Is(err, bot.ErrOtherApp) {
				s.refused, s.refusal = now, err.Error()
			}
			s.tell(wrong.Error(), err.Error())
			return false
		}
	}
	if now.app != before.app && s.renewApp != nil {
		s.renewApp(now.app)
	}
	if now.modelKey != before.modelKey {
		s.renewKey(now.modelKey)
	}
	s.used = env
	s.log.InfoContext(ctx, "secrets changed in their files, and the new ones are used", "variables", strings.Join(names, ", "))
	s.tell(wrong.Error())
	return true
}

// withUsed returns the environment with the secrets in use in place of those that have problems. So a file that can't
// be read does not stop the renewal of the other secrets.
func withUsed(env, used config.Env, wrong yamldoc.Problems) config.Env {
	bad := func(variables ...string) bool {
		return slices.ContainsFunc(wrong, func(p yamldoc.Problem) bool {
			return slices.Contains(variables, strings.TrimSuffix(p.Variable, "_FILE"))
		})
	}
	if bad("SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_REFRESH_TOKEN") {
		env.Rotation = used.Rotation
	}
	for variable, secret := range map[string]struct{ now, used *config.Secret }{
		"SLACK_BOT_TOKEN": {&env.BotToken, &used.BotToken}, "SLACK_APP_TOKEN": {&env.AppToken, &used.AppToken},
		"SLACK_SIGNING_SECRET": {&env.SigningSecret, &used.SigningSecret}, "OPENAI_API_KEY": {&env.ModelKey, &used.ModelKey},
	} {
		if bad(variable) {
			*secret.now = *secret.used
		}
	}
	return env
}

// tell logs the reasons why secrets can't be used. If the reasons are those that were logged last, tell does not log
// them.
func (s *secrets) tell(reasons ...string) {
	why := strings.Trim(strings.Join(reasons, "\n"), "\n")
	if why == s.told {
		return
	}
	if s.told = why; why != "" {
		s.log.Error("a secret can't be used; the previous one stays in use", "error", why)
	}
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/bot"
	"countersign/bot/installation"
	"countersign/bot/rotation"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// oddSkew and badSkew are limits on the difference between this machine's clock and Slack's clock. From oddSkew on, the
// doctor warns. From badSkew on, the check fails if the bot receives HTTP requests or sends webhooks: the bot refuses
// HTTP requests that are older than five minutes, and receivers refuse webhooks that are too old.
const (
	oddSkew = time.Minute
	badSkew = 4 * time.Minute
)

// slack asks Slack about the app, and about the channels and people of the policy.
func (d *Doctor) slack(ctx context.Context, env config.Env, policy *approvers.Policy) {
	d.begin("Slack")
	token, renew := env.BotToken.Reveal(), "set SLACK_BOT_TOKEN to the Bot User OAuth Token of "+settingsPage("", "oauth")
	if env.Rotation.On() {
		if token = d.rotatingToken(ctx, env); token == "" {
			return
		}
		if token != env.BotToken.Reveal() {
			renew = startBot
		}
	}
	e := installation.New(token, env.AppToken.Reveal(), env.SlackAPIURL)
	in, err := e.App(ctx)
	if err != nil {
		d.unanswered(err, "the bot token", renew)
		return
	}
	app := in.ID
	if app == "" {
		app = e.TokenApp()
	}
	d.app = settings.Installation{Team: in.TeamID, Enterprise: in.Enterprise, App: in.ID}
	d.ok("answers in %s: %s is in %s (%s)%s", in.Took.Round(time.Millisecond), in.User, in.Team, in.TeamID, appNamed(app))
	d.clock(in, env, policy)
	d.scopes(in, app, policy)
	if env.Transport == config.HTTPMode {
		d.requests(ctx, env, app)
	} else if env.AppToken != "" {
		d.socket(ctx, e, in)
	}
	if policy != nil {
		d.channels(ctx, e, policy, in)
		d.people(ctx, e, policy)
	}
}

// startBot says what to do about a stored bot token that is not valid.
const startBot = "start the bot, which renews the token; if it runs, its log says why it does not"

// rotatingToken returns the valid bot token of an app with token rotation. The doctor never uses a refresh token,
// because each refresh token can be used only once. If there is no valid token, rotatingToken says so.
func (d *Doctor) rotatingToken(ctx context.Context, env config.Env) string {
	token, issued, expires, err := d.StoredToken(ctx, env)
	now := time.Now()
	switch {
	case errors.Is(err, rotation.ErrRefused):
		d.fail(cli.ExitUsage, err.Error(), "or set SLACK_CLIENT_ID and SLACK_CLIENT_SECRET to the earlier values")
		return ""
	case err != nil:
		d.warn("the stored bot token can't be read, so Slack is not checked: "+err.Error(), "correct the findings about the store first")
		return ""
	case token == "" && env.BotToken != "":
		d.ok("the bot has no token of its own yet: the doctor uses SLACK_BOT_TOKEN, and serve gets a token when it starts")
		return env.BotToken.Reveal()
	case token == "":
		d.warn("the bot has no token of its own yet, so Slack is not checked: serve gets a token when it starts", "for this check, set SLACK_BOT_TOKEN to the Bot User OAuth Token of "+settingsPage("", "oauth"))
		return ""
	case !now.Before(expires):
		d.warn("the stored bot token expired at "+expires.UTC().Format(time.RFC3339)+", so Slack is not checked", startBot)
		return ""
	case now.Sub(issued) > expires.Sub(issued)*3/4:
		d.warn("the bot token was not renewed in time, and expires at "+expires.UTC().Format(time.RFC3339), "the log of serve says why")
	default:
		d.ok("the bot renews its token: the token in use expires at %s", expires.UTC().Format(time.RFC3339))
	}
	return token
}

func appNamed(app string) string {
	if app == "" {
		return ""
	}
	return ", app " + app
}

// settingsPages names pages of an app's settings for people.
var settingsPages = map[string]string{
	"oauth":                "the page OAuth & Permissions",
	"general":              "the page Basic Information",
	"event-subscriptions":  "the page Event Subscriptions",
	"interactive-messages": "the page Interactivity & Shortcuts",
	"slash-commands":       "the page Slash Commands",
}

// settingsPage returns the address of a page of the app's settings. If the app is unknown, the result is the name of
// the page, and the address of the list of apps.
func settingsPage(app, name string) string {
	if app == "" {
		return settingsPages[name] + " at https://api.slack.com/apps"
	}
	return "https://api.slack.com/apps/" + app + "/" + name
}

// The method "unanswered" reports a call that Slack refused or did not answer. The parameter "what" names the token
// that was used.
func (d *Doctor) unanswered(err error, what, do string) {
	code, scope := installation.SlackCode(err)
	switch {
	case code == "missing_scope" && scope != "":
		d.fail(cli.ExitNo, "Slack refuses to answer: the scope "+scope+" is missing", "add it and reinstall the app")
	case installation.RefusesToken(err):
		d.fail(cli.ExitUsage, fmt.Sprintf("Slack refuses %s (%s)", what, code), do)
	case code != "":
		d.fail(cli.ExitNo, "Slack refuses to answer: "+code, do)
	default:
		d.fail(cli.ExitFailed, "Slack can't be reached: "+err.Error(), "check the network, and SLACK_API_URL if it is set")
	}
}

// clock compares this machine's clock with Slack's. With a database, the bot uses the database's time, but still compares
// the times of Slack's requests with this machine's clock.
func (d *Doctor) clock(in installation.App, env config.Env, policy *approvers.Policy) {
	database := env.Store.Backend == config.Postgres
	skew := in.Skew.Round(time.Second)
	where := "ahead of"
	if skew < 0 {
		where = "behind"
	}
	what := fmt.Sprintf("this machine's clock is %s %s Slack's", skew.Abs(), where)
	switch {
	case !in.Dated:
	case skew.Abs() >= badSkew && env.Transport == config.HTTPMode:
		d.fail(cli.ExitNo, what+": the bot refuses Slack's requests as too old", "set the clock, for example with NTP")
	case skew.Abs() >= badSkew && !database && policy != nil && slices.ContainsFunc(policy.Clients, func(c approvers.Client) bool { return c.Webhook != nil }):
		d.fail(cli.ExitNo, what+": receivers of webhooks refuse messages with such a time", "set the clock, for example with NTP")
	case skew.Abs() >= oddSkew && database:
		d.warn(what, "set the clock, for example with NTP: over HTTP, the bot refuses Slack's requests if this clock is wrong by five minutes")
	case skew.Abs() >= oddSkew:
		d.warn(what, "set the clock, for example with NTP: deadlines and the history use this clock")
	default:
		d.ok("this machine's clock agrees with Slack's")
	}
}

// The method "scopes" compares the token's scopes with the manifest's scopes. For a missing scope that no feature of
// the policy needs, the method only adds a warning.
func (d *Doctor) scopes(in installation.App, app string, policy *approvers.Policy) {
	if len(in.Scopes) == 0 {
		d.warn("Slack does not say which scopes the bot token has", "compare them with countersign manifest on "+settingsPage(app, "oauth"))
		return
	}
	lacks := false
	needed := []string{}
	inUse := bot.MissingScopes(in.Scopes, policy)
	for _, s := range bot.Scopes() {
		needed = append(needed, s.Name)
		if !slices.Contains(in.Scopes, s.Name) {
			lacks = true
			do := "add it on " + settingsPage(app, "oauth") + ", and reinstall the app"
			if !slices.ContainsFunc(inUse, func(m bot.Scope) bool { return m.Name == s.Name }) {
				d.warn(fmt.Sprintf("the scope %s is missing: the policy does not need it now; without it the bot can't %s", s.Name, s.For), do)
				continue
			}
			d.fail(cli.ExitNo, fmt.Sprintf("the scope %s is missing: without it the bot can't %s", s.Name, s.For), do)
		}
	}
	if !lacks {
		d.ok("the bot token has the %d scopes that it needs", len(needed))
	}
	var more []string
	for _, s := range in.Scopes {
		if !slices.Contains(needed, s) {
			more = append(more, s)
		}
	}
	if len(more) > 0 {
		d.warn(fmt.Sprintf("the bot token has scopes that it does not need: %s", strings.Join(more, ", ")),
			"remove those that nothing else uses on "+settingsPage(app, "oauth")+", and reinstall the app")
	}
}

// socket checks whether Socket Mode can be used, without opening a socket.
func (d *Doctor) socket(ctx context.Context, e *installation.Examiner, in installation.App) {
	if of := e.TokenApp(); of != "" && in.ID != "" && of != in.ID {
		d.fail(cli.ExitUsage, fmt.Sprintf("the app token belongs to another app (%s) than the bot token (%s)", of, in.ID), "set SLACK_APP_TOKEN to an app-level token of "+settingsPage(in.ID, "general"))
		return
	}
	err := e.Socket(ctx)
	code, _ := installation.SlackCode(err)
	switch {
	case err == nil:
		d.ok("sockets can be opened (Socket Mode)")
	case code == "missing_scope":
		d.fail(cli.ExitNo, "the app token lacks connections:write", "make another one with it on "+settingsPage(in.ID, "general")+", and set SLACK_APP_TOKEN to it")
	case errors.Is(err, installation.ErrSocketHost):
		d.fail(cli.ExitFailed, err.Error(), "let this machine reach Slack's WebSocket addresses")
	case code != "" && !installation.RefusesToken(err):
		d.fail(cli.ExitNo, "no socket can be opened: "+code, "switch Socket Mode on: "+settingsPage(in.ID, "socket-mode"))
	default:
		d.unanswered(err, "the app token", "set SLACK_APP_TOKEN to an app-level token with connections:write, of "+settingsPage(in.ID, "general"))
	}
}

package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"countersign/config/yamldoc"
)

var (
	slackToken    = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	signingSecret = regexp.MustCompile(`^[0-9a-f]{32}$`)
	clientID      = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)
	clientSecret  = regexp.MustCompile(`^[0-9A-Za-z]{16,}$`)
)

// slack reads the settings for the connection to Slack.
func (r *envReader) slack(e *Env) {
	v, needs := r.variables, r.command.needsSlack()
	const whereBot = "write the Bot User OAuth Token of your app, from its page OAuth & Permissions"
	switch {
	case r.rotates():
		e.Rotation = r.rotation()
		e.BotToken = r.token("SLACK_BOT_TOKEN", v.SlackBotToken, "xoxe.xoxb-", whereBot+", or leave it out", false)
	case strings.HasPrefix(v.SlackBotToken, "xoxe"):
		r.wrong("SLACK_BOT_TOKEN", "is a token that ends within 12 hours, because the app has token rotation",
			"set SLACK_CLIENT_ID, SLACK_CLIENT_SECRET and SLACK_REFRESH_TOKEN too, and the bot renews its token by itself")
	default:
		e.BotToken = r.token("SLACK_BOT_TOKEN", v.SlackBotToken, "xoxb-", whereBot+", or set SLACK_REFRESH_TOKEN if the app has token rotation", needs)
	}
	e.Transport = Transport(v.Transport)
	if e.Transport != SocketMode && e.Transport != HTTPMode {
		r.wrong("COUNTERSIGN_TRANSPORT", yamldoc.Quote(v.Transport)+" is not a transport", "write socket or http")
	}
	e.AppToken = r.token("SLACK_APP_TOKEN", v.SlackAppToken, "xapp-",
		"write an app-level token with connections:write, from your app's page Basic Information", needs && e.Transport == SocketMode)
	e.SigningSecret = r.signingSecret(v.SlackSigningSecret, needs && e.Transport == HTTPMode)
	e.SlackAPIURL = r.baseURL("SLACK_API_URL", v.SlackAPIURL, "write a URL such as https://slack.com/api/, or leave it out for Slack itself")
	if e.SlackAPIURL != "" && !strings.HasSuffix(e.SlackAPIURL, "/") {
		e.SlackAPIURL += "/"
	}
	e.HTTPAddr = r.address("COUNTERSIGN_HTTP_ADDR", v.HTTPAddr)
}

// tokenKinds maps a token's prefix to its kind. So an error can name the right variable.
var tokenKinds = []struct{ prefix, is string }{
	{"xoxb-", "a bot token that does not expire (xoxb-), which belongs in SLACK_BOT_TOKEN of an app without token rotation"},
	{"xapp-", "an app-level token (xapp-), which belongs in SLACK_APP_TOKEN"},
	{"xoxp-", "a user token (xoxp-)"},
	{"xoxe.xoxb-", "a bot token of an app with token rotation (xoxe.xoxb-), which belongs in SLACK_BOT_TOKEN"},
	{"xoxe.", "another token of an app with token rotation (xoxe.)"},
	{"xoxe-", "a refresh token (xoxe-), which belongs in SLACK_REFRESH_TOKEN"},
	{"xox", "a token of some other kind"},
}

// token checks the form of a Slack token. The error never repeats the token.
func (r *envReader) token(name, text, prefix, where string, needed bool) Secret {
	if text == "" {
		if needed {
			r.missing(name, where)
		}
		return ""
	}
	if problem := wrapped(text); problem != "" {
		r.wrong(name, problem, "write the token alone")
		return ""
	}
	if !strings.HasPrefix(text, prefix) {
		is := "not a Slack token"
		for _, k := range tokenKinds {
			if strings.HasPrefix(text, k.prefix) {
				is = k.is
				break
			}
		}
		r.wrong(name, "is "+is, "it must begin with "+prefix+": "+where)
		return ""
	}
	if !slackToken.MatchString(strings.TrimPrefix(text, prefix)) {
		r.wrong(name, "is cut off or has characters that no Slack token has", "copy it once more: "+where)
		return ""
	}
	return Secret(text)
}

// rotates reports whether the app has token rotation. The variables SLACK_CLIENT_ID and SLACK_CLIENT_SECRET alone do
// not show this, because they are often set for other programs.
func (r *envReader) rotates() bool {
	const name = "SLACK_REFRESH_TOKEN"
	return r.variables.SlackRefreshToken != "" || r.files.paths[name] != ""
}

// rotation reads the credentials for token rotation. Token rotation needs all of them.
func (r *envReader) rotation() Rotation {
	const credentials = "write the %s from your app's page Basic Information, or leave out SLACK_REFRESH_TOKEN if the app has no token rotation"
	v := r.variables
	return Rotation{
		ClientID:     r.credential("SLACK_CLIENT_ID", v.SlackClientID, clientID, fmt.Sprintf(credentials, "Client ID")),
		ClientSecret: r.credential("SLACK_CLIENT_SECRET", v.SlackClientSecret, clientSecret, fmt.Sprintf(credentials, "Client Secret")),
		RefreshToken: r.token("SLACK_REFRESH_TOKEN", v.SlackRefreshToken, "xoxe-",
			"write the Bot User OAuth Refresh Token of your app, from its page OAuth & Permissions", true),
	}
}

// credential checks the form of a credential of the app.
func (r *envReader) credential(name, text string, form *regexp.Regexp, where string) Secret {
	switch {
	case text == "":
		r.missing(name, where)
		return ""
	case wrapped(text) != "":
		r.wrong(name, wrapped(text), "write the value alone")
		return ""
	case !form.MatchString(text):
		r.wrong(name, "does not have the form of Slack's value", where)
		return ""
	}
	return Secret(text)
}

func (r *envReader) signingSecret(text string, needed bool) Secret {
	const name, where = "SLACK_SIGNING_SECRET", "write the Signing Secret from your app's page Basic Information"
	if text == "" {
		if needed {
			r.missing(name, where+"; without it anybody could send requests in Slack's name")
		}
		return ""
	}
	if !signingSecret.MatchString(text) {
		r.wrong(name, "is not a signing secret, which has 32 characters from 0-9 and a-f", where)
		return ""
	}
	return Secret(text)
}

// missing reports a missing variable that the command requires, and points out similar names that are set.
func (r *envReader) missing(name, hint string) {
	if slices.ContainsFunc(r.problems, func(p yamldoc.Problem) bool { return p.Variable == name+fileSuffix }) {
		return // the problem with the secret's file was already reported
	}
	for _, other := range r.others {
		if yamldoc.EditDistance(other, name) <= 2 {
			hint += " (" + other + " is set: is that a slip?)"
		}
	}
	r.wrong(name, "is missing", hint)
}

// wrapped describes characters that were copied along with a secret, such as quotes. If there are no such characters,
// wrapped returns "".
func wrapped(text string) string {
	switch {
	case strings.TrimSpace(text) != text:
		return "has a space or a line end around it"
	case strings.ContainsAny(text[:1], `"'<`):
		return "has quotes or brackets around it"
	case strings.ContainsAny(text, " \t\r\n"):
		return "has a space or a line end in it"
	}
	return ""
}

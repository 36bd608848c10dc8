package doctor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"countersign/bot/transport"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// requestURLs are the Request URLs in an app's settings, each with the path at which the bot receives these requests.
var requestURLs = []struct{ what, path, page string }{
	{"events", transport.EventsPath, "event-subscriptions"},
	{"clicks and forms", transport.InteractionsPath, "interactive-messages"},
	{"slash commands", transport.CommandsPath, "slash-commands"},
}

// requests checks whether Slack's requests reach the bot. The doctor can't read the Request URLs in Slack's settings.
// Therefore the doctor acts like Slack, and sends requests to the public address that the operator gave.
func (d *Doctor) requests(ctx context.Context, env config.Env, app string) {
	if d.URL == "" {
		d.warn("whether Slack's requests reach the bot was not tried", "run countersign doctor --url https://… with the bot's public address while serve runs; "+
			settingsPage(app, requestURLs[0].page)+" shows whether Slack has verified it")
		return
	}
	// one is true if the operator gave a full Request URL, to which Slack sends requests of all kinds.
	base, one := strings.CutSuffix(strings.TrimSuffix(d.URL, "/"), transport.EventsPath)
	for _, u := range requestURLs {
		at := base + u.path
		if one {
			at = base + transport.EventsPath
		}
		if !d.requestURL(ctx, env, app, at, u.what, u.path, settingsPage(app, u.page)) {
			return
		}
	}
}

// requestURL checks one Request URL. If the other URLs would fail for the same reason, requestURL returns false.
func (d *Doctor) requestURL(ctx context.Context, env config.Env, app, at, what, path, settings string) bool {
	err := challenge(ctx, at, path, env.SigningSecret.Reveal())
	var status statusError
	switch {
	case err == nil:
		d.ok("%s accepts the signing secret, and receives %s; it has to be the Request URL on %s", at, what, settings)
	case errors.As(err, &status) && status == http.StatusUnauthorized:
		d.fail(cli.ExitNo, at+" refuses requests that are signed with SLACK_SIGNING_SECRET", "set the variable to the Signing Secret of "+settingsPage(app, "general")+", for serve, too, and check that no proxy changes the requests")
		return false
	case errors.As(err, &status), errors.Is(err, errChallenge):
		d.fail(cli.ExitNo, fmt.Sprintf("no %s arrive: %s does not lead to the bot: %s", what, at, err),
			"have the address lead to COUNTERSIGN_HTTP_ADDR ("+env.HTTPAddr+") of serve, with the path as it is; or use one Request URL for all, the one for events, and write it on "+settings)
	default:
		d.fail(cli.ExitFailed, fmt.Sprintf("%s can't be reached: %s", at, err), "start serve, and have the address lead to COUNTERSIGN_HTTP_ADDR ("+env.HTTPAddr+")")
		return false
	}
	return true
}

// statusError is an HTTP status other than success.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("it answers %d %s", int(s), http.StatusText(int(s)))
}

// errChallenge is the error for an address that does not return the challenge.
var errChallenge = errors.New("it does not return the challenge")

// challenge sends a random value to an address, and expects the same value back. The request has the form of the
// requests that Slack sends to the path.
func challenge(ctx context.Context, at, path, secret string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	value := rand.Text()
	media, body, err := transport.Challenge(path, value)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", now, body)
	req.Header.Set("Content-Type", media)
	req.Header.Set("X-Slack-Request-Timestamp", now)
	req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return statusError(resp.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(value)) {
		return errChallenge
	}
	return nil
}

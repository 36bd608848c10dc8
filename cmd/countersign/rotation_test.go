package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/bot/rotation"
	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
)

// rotatingApp has the credentials of the app in rotatingSeed.
var rotatingApp = rotation.App{ClientID: "1.2", ClientSecret: "0123456789abcdef", RefreshToken: "xoxe-1-first"}

// rotatingSeed is the demo's workspace, with an app with token rotation.
func rotatingSeed() workspace.Seed {
	seed := workspace.DemoSeed()
	seed.App.BotTokens = nil
	seed.App.Rotation = workspace.SeedRotation{ClientID: rotatingApp.ClientID, ClientSecret: rotatingApp.ClientSecret, RefreshToken: rotatingApp.RefreshToken}
	return seed
}

// renewals counts the calls that exchange a refresh token.
func (b *synctestHarness) renewals() int {
	return len(b.made(time.Time{}, func(c apiCall) bool { return c.method == "oauth.v2.access" }))
}

// asksAndApproves asks for a call, and approves it.
func (b *synctestHarness) asksAndApproves(n string) {
	b.Helper()
	b.says("plain " + n)
	b.asked(n)
	b.within(time.Minute, "a card for "+n, b.idle)
	b.ok(b.approve("teo", n, b.card(n)))
	b.within(time.Minute, "a run of "+n, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.runs[n] == 1
	})
}

// TestTokenRotation runs bots whose token expires every 12 hours. The bots renew it in time. One replica gets the token,
// and all replicas use it. A restarted bot uses the stored token. If Slack says that the token has expired, the bot
// renews it, and sends the refused messages again.
func TestTokenRotation(t *testing.T) {
	for _, c := range []struct {
		name    string
		several bool
		hours   time.Duration
		renewed int // expected number of renewals: one every 6 hours, and one at the start
	}{{"one", false, 13, 3}, {"replicas", true, 0, 1}} {
		t.Run(c.name, func(t *testing.T) {
			inSeededTime(t, rotatingSeed(), func(b *synctestHarness) { b.app, b.board = rotatingApp, boardIf(c.several) }, func(b *synctestHarness) {
				b.asksAndApproves("1")
				b.pass(c.hours * time.Hour)
				b.asksAndApproves("2")
				if got := b.renewals(); got != c.renewed {
					t.Errorf("the token was renewed %d times", got)
				}
				b.restart()
				b.pass(time.Minute)
				if got := b.renewals(); got != c.renewed {
					t.Errorf("after a restart, the token was renewed again: %d times", got)
				}
				b.asksAndApproves("3")
				if c.several {
					return
				}
				b.ws.ExpireTokens() // the next call tells the bot
				b.asksAndApproves("4")
				if got := b.renewals(); got != c.renewed+1 {
					t.Errorf("the expired token was not renewed: %d times", got)
				}
				if log := strings.Join(b.log.all(), "\n"); strings.Contains(log, "xoxe") {
					t.Errorf("the log has a token:\n%s", log)
				}
			})
		})
	}
}

// While the bot token has ended and can't be renewed, messages wait as during an outage of Slack.
func TestTokenNotRenewedForHours(t *testing.T) {
	testkit.SkipIfShort(t)
	inSeededTime(t, rotatingSeed(), func(b *synctestHarness) { b.app = rotatingApp }, func(b *synctestHarness) {
		b.asksAndApproves("1")
		b.pass(2 * time.Hour) // then the bot asks Slack again who writes
		b.ws.RevokeRefreshTokens()
		b.ws.ExpireTokens()
		b.says("plain 2")
		b.pass(3 * time.Hour)
		if b.ready() != 0 {
			t.Error("the bot is ready")
		}
		b.app.RefreshToken = b.ws.IssueRefreshToken()
		b.restart()
		b.asked("2")
		b.asksAndApproves("3")
	})
}

// TestTokenRotationOfAProcess runs the program with the credentials in files. The doctor reads the stored token while
// the bot runs, and when it does not. A refused refresh token or a wrong client secret has a clear error.
func TestTokenRotationOfAProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	seed, err := json.Marshal(rotatingSeed())
	if err != nil {
		t.Fatal(err)
	}
	write(t, file("seed.json"), seed)
	write(t, file("secret"), []byte(rotatingApp.ClientSecret))
	write(t, file("refresh"), []byte(rotatingApp.RefreshToken))
	p := openProcessHarness(t, "--seed", file("seed.json"))
	p.env = append(p.env, "SLACK_BOT_TOKEN=", "SLACK_CLIENT_ID="+rotatingApp.ClientID, "SLACK_CLIENT_SECRET_FILE="+file("secret"), "SLACK_REFRESH_TOKEN_FILE="+file("refresh"))
	its := newResident(t)
	doctor := func(want string) {
		t.Helper()
		if _, out, _, err := its.do(p.dir, append(plainEnv(), p.env...), "doctor"); err != nil || !strings.Contains(out, want) {
			t.Fatalf("doctor does not say %q, %v:\n%s", want, err, out)
		}
	}
	doctor("WARN  the bot has no token of its own yet")
	running, admin := p.serve()
	ada := p.watcher("ada")
	thread := ada.says("#support", "", "@Countersign what is the state of ORD-123?")
	ada.sees("#support", thread, "ORD-123")
	doctor("OK    the bot renews its token: the token in use expires at")

	write(t, file("refresh"), []byte("xoxe-1-other"))
	hangup(t, running)
	running.says(`(secrets changed in their files, and the new ones are used.*SLACK_REFRESH_TOKEN)`)
	running.says(`(the bot token was not renewed.*Slack refuses the refresh token \(invalid_refresh_token\). Reinstall the app)`)
	if _, report := get(t, admin+"/readyz?wait=5"); !strings.Contains(report, "renewal of the bot token") {
		t.Errorf("/readyz says %s", report)
	}
	if err := running.end(syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v", err)
	}
	doctor("OK    the bot renews its token: the token in use expires at")
	resp, err := http.Post(p.base+"/faults", "application/json", strings.NewReader(`{"fault":"error","method":"auth.test","error":"token_expired"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	doctor("start the bot, which renews the token")
	write(t, file("refresh"), []byte(rotatingApp.RefreshToken))
	running, _ = p.serve()
	ada.sees("#support", ada.says("#support", "", "@Countersign what is the state of ORD-131?"), "ORD-131")
	if err := running.end(syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v", err)
	}

	write(t, file("secret"), []byte("fedcba9876543210"))
	doctor("FAIL  the bot token can't be renewed: the stored token can't be decrypted")
	launch(t, p.dir, p.env, "serve").says(`(the stored token can't be decrypted)`)
	refused := launch(t, p.dir, append(p.env, "COUNTERSIGN_STORE=bolt:"+file("other.db")), "serve")
	refused.says(`(Slack refuses SLACK_CLIENT_ID or SLACK_CLIENT_SECRET \(bad_client_secret\))`)
	<-refused.gone
	if code := refused.cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("the exit code is %d", code)
	}
	if strings.Contains(running.text(), "xoxe") {
		t.Error("the log contains a token")
	}
}

package rotation_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers/workflow/settings"
	"countersign/bot/rotation"
	"countersign/internal/demo/workspace"
	"countersign/store"
	"countersign/store/bolt"
)

// app has the credentials of the workspace's app.
var app = rotation.App{ClientID: "1.2", ClientSecret: "0123456789abcdef", RefreshToken: "xoxe-1-first"}

// fixture has a workspace whose app has token rotation, and a store. The time is faked.
type fixture struct {
	*testing.T
	ctx   context.Context
	stop  context.CancelFunc
	path  string // path of the store
	ws    *workspace.Server
	db    *bolt.Store
	log   *lockedText
	board *board
	work  sync.WaitGroup

	mu        sync.Mutex
	ahead     time.Duration // how far the clock of the processes is ahead of Slack's clock
	exchanges int
	down      bool                       // Slack can't be reached
	refusal   string                     // the code with which auth.test refuses all tokens; empty: auth.test answers as usual
	answer    func(*http.Response) error // changes the answers of oauth.v2.access; may be nil
}

// inFakedTime runs a test with a fixture.
func inFakedTime(t *testing.T, fn func(*fixture)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	synctest.Test(t, func(t *testing.T) {
		seed := workspace.DemoSeed()
		seed.App.BotTokens = nil
		seed.App.Rotation = workspace.SeedRotation{ClientID: app.ClientID, ClientSecret: app.ClientSecret, RefreshToken: app.RefreshToken}
		f := &fixture{T: t, path: path, log: new(lockedText), board: new(board)}
		f.ctx, f.stop = context.WithCancel(context.Background())
		var err error
		f.ws, err = workspace.New(workspace.Config{Seed: seed, BaseURL: "http://slack.test"})
		f.ok(err)
		f.db, err = bolt.Open(path, bolt.Options{})
		f.ok(err)
		defer func() {
			f.stop()
			f.work.Wait()
			f.ok(errors.Join(f.ws.Close(), f.db.Close()))
		}()
		fn(f)
	})
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// RoundTrip passes a call to the workspace.
func (f *fixture) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	down, refusal := f.down, f.refusal
	f.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	f.ws.Handler().ServeHTTP(w, r)
	resp := w.Result()
	if refusal != "" && strings.HasSuffix(r.URL.Path, "/auth.test") {
		resp.Body = io.NopCloser(strings.NewReader(`{"ok":false,"error":"` + refusal + `"}`))
	}
	if !strings.HasSuffix(r.URL.Path, "/oauth.v2.access") {
		return resp, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exchanges++
	if f.answer != nil {
		if err := f.answer(resp); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

// answers sets the function that changes the answers of oauth.v2.access.
func (f *fixture) answers(change func(*http.Response) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = change
}

func (f *fixture) exchanged(want int) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.exchanges != want {
		f.Errorf("refresh tokens were exchanged %d times, want %d", f.exchanges, want)
	}
}

// call calls auth.test with a bot token, and returns Slack's error code.
func (f *fixture) call(token string) string {
	f.Helper()
	form := strings.NewReader(url.Values{"token": {token}}.Encode())
	r := httptest.NewRequest(http.MethodPost, "http://slack.test/api/auth.test", form)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	f.ws.Handler().ServeHTTP(w, r)
	body := w.Body.String()
	if strings.Contains(body, `"ok":true`) {
		return ""
	}
	_, code, _ := strings.Cut(body, `"error":"`)
	code, _, _ = strings.Cut(code, `"`)
	return code
}

// bot is a process with a Keeper.
type bot struct {
	*rotation.Keeper
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	token string
	used  int // how many tokens the process has used
}

// begin starts a process.
func (f *fixture) begin(a rotation.App, s store.Store) (*bot, error) {
	b := &bot{done: make(chan struct{})}
	b.Keeper = rotation.New(rotation.Options{
		App: a, Store: s, Replica: f.board.join(b), Job: "token", URL: "http://slack.test/api/", HTTP: &http.Client{Transport: f},
		Now: f.now, Log: slog.New(slog.NewTextHandler(f.log, nil)),
	})
	b.Use = func(_ context.Context, token string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.token = token
		b.used++
		return nil
	}
	token, err := b.Token(f.ctx)
	if err != nil {
		return b, err
	}
	f.ok(b.Use(f.ctx, token))
	var ctx context.Context
	ctx, b.stop = context.WithCancel(f.ctx)
	f.work.Go(func() {
		defer close(b.done)
		_ = b.Run(ctx) // ends without an error
	})
	return b, nil
}

// now returns the time of the processes' clock.
func (f *fixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Add(f.ahead)
}

func (f *fixture) setClock(ahead time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead = ahead
}

// started starts a process that must start.
func (f *fixture) started(a rotation.App) *bot {
	f.Helper()
	b, err := f.begin(a, f.db)
	f.ok(err)
	return b
}

// end stops a process.
func (f *fixture) end(b *bot) {
	b.stop()
	<-b.done
	f.board.leave(b)
}

func (b *bot) now() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.token
}

// works checks that Slack accepts the token of a process, and that the process says so.
func (f *fixture) works(b *bot) {
	f.Helper()
	if code := f.call(b.now()); code != "" {
		f.Errorf("Slack refuses the token: %s", code)
	}
	if err := b.Valid(f.ctx); err != nil {
		f.Error(err)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// board gives the claim to the process that joined first.
type board struct {
	mu   sync.Mutex
	bots []*bot
}

func (b *board) join(of *bot) store.Replica {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bots = append(b.bots, of)
	return member{board: b, of: of}
}

func (b *board) leave(of *bot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.bots {
		if other == of {
			b.bots = append(b.bots[:i:i], b.bots[i+1:]...)
			return
		}
	}
}

// member is a process on a board.
type member struct {
	store.Alone
	board *board
	of    *bot
}

func (m member) Enter(ctx context.Context, _ string) (context.Context, func(), bool) {
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	return ctx, func() {}, m.board.bots[0] == m.of
}

// lockedText collects the lines of a log.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) has(t *testing.T, words string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !strings.Contains(l.b.String(), words) {
		t.Errorf("the log does not have %q:\n%s", words, l.b.String())
	}
}

// Of several processes, one renews the token every 6 hours, and all of them use it. If this process ends, another one
// renews the token. A new process uses the stored token. The store and the log have no token in clear.
func TestReplicas(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		first, second, third := f.started(app), f.started(app), f.started(app)
		f.exchanged(1)
		pass(7 * time.Hour)
		f.exchanged(2)
		f.end(first)
		for range 10 {
			pass(6 * time.Hour)
			f.works(second)
			f.works(third)
		}
		f.exchanged(12)
		fourth := f.started(app)
		f.works(fourth)
		f.exchanged(12)
		f.ok(second.Renewed(f.ctx))
		f.ok(f.db.View(f.ctx, func(r store.Reader) error {
			s, err := r.Setting(store.SettingSlackToken)
			if strings.Contains(string(s.Value), "xoxe") {
				t.Errorf("the store has a token: %s", s.Value)
			}
			return err
		}))
		if strings.Contains(f.log.b.String(), "xoxe") {
			t.Errorf("the log has a token:\n%s", f.log.b.String())
		}
	})
}

// A process that starts after its token has expired gets a new token first.
func TestExpiredAtStart(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		b := f.started(app)
		f.end(b)
		pass(100 * time.Hour)
		if code := f.call(b.now()); code != "token_expired" {
			t.Errorf("Slack says %q", code)
		}
		f.works(f.started(app))
		f.exchanged(2)
	})
}

// A process that starts with a token that Slack refuses gets a new token first.
func TestRefusedAtStart(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		f.end(f.started(app))
		pass(time.Hour)
		f.ws.ExpireTokens()
		f.works(f.started(app))
		f.exchanged(2)
	})
}

// If Slack refuses a new token, too, a process does not start, and says what to do. The first start ends immediately. A
// start within a minute of the renewal first waits until it can renew the token.
func TestNewTokenRefused(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		f.mu.Lock()
		f.refusal = "account_inactive"
		f.mu.Unlock()
		began := f.now()
		for i, atMost := range []time.Duration{0, time.Minute} {
			f.board.bots = nil
			_, err := f.begin(app, f.db)
			if !errors.Is(err, rotation.ErrRefused) || !strings.Contains(err.Error(), "(account_inactive)") || !strings.Contains(err.Error(), "Reinstall the app") {
				t.Errorf("at start %d: %v", i+1, err)
			}
			if took := f.now().Sub(began); took > atMost {
				t.Errorf("start %d ends after %s", i+1, took)
			}
			f.exchanged(i + 1)
		}
	})
}

// A process does not start with a token that Slack refuses, if the replica with the claim does not renew it.
func TestRefusedWithoutClaim(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		b := f.started(app)
		b.stop() // the stopped process keeps the claim
		pass(time.Hour)
		f.ws.ExpireTokens()
		if _, err := f.begin(app, f.db); err == nil || !strings.Contains(err.Error(), "(token_expired), and the replica that should renew it does not") {
			t.Errorf("it starts: %v", err)
		}
	})
}

// A process that starts with a new refresh token does not need the claim to exchange it. Earlier processes, which do not
// know this refresh token, may have the claim.
func TestNewWithoutClaim(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		f.board.join(nil) // a process without token rotation
		old := f.started(app)
		f.works(old)
		f.ws.RevokeRefreshTokens()
		pass(13 * time.Hour)
		next := app
		next.RefreshToken = f.ws.IssueRefreshToken()
		f.works(f.started(next))
		f.works(f.started(next))
		pass(time.Minute)
		f.works(old)
		f.exchanged(2)
	})
}

// If Slack says that the token has expired, the process renews it immediately. Late answers about the previous token
// cause no more renewals.
func TestExpiredEarly(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		b := f.started(app)
		pass(time.Hour)
		old := b.now()
		b.Expired()
		synctest.Wait()
		if b.now() == old {
			t.Error("the token was not renewed")
		}
		f.works(b)
		b.Expired()
		pass(5 * time.Minute)
		f.exchanged(2)
	})
}

// If the clock is set back, the token has a time of issue in the future. The process renews such a token immediately,
// while it runs and when it starts.
func TestClockSetBack(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		f.setClock(24 * time.Hour)
		b := f.started(app)
		f.setClock(0)
		pass(time.Minute)
		f.exchanged(2)
		pass(7 * time.Hour)
		f.exchanged(3)
		f.works(b)
		f.end(b)
		f.setClock(-24 * time.Hour)
		pass(13 * time.Hour)
		f.works(f.started(app))
		f.exchanged(4)
	})
}

// If Slack revokes the refresh token, the bot works until its token expires, and says what to do. A new refresh token
// from the operator is used immediately. After a restart with the previous environment, the bot goes on with the stored
// token.
func TestRevoked(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		b := f.started(app)
		f.ws.RevokeRefreshTokens()
		pass(7 * time.Hour)
		f.works(b)
		f.log.has(t, "Slack refuses the refresh token (invalid_refresh_token). Reinstall the app")
		if err := b.Renewed(f.ctx); !errors.Is(err, rotation.ErrRefused) || !strings.Contains(err.Error(), "set SLACK_REFRESH_TOKEN") {
			t.Errorf("it says %v", err)
		}
		f.exchanged(2) // a refused token is not tried again
		pass(6 * time.Hour)
		if b.Valid(f.ctx) == nil {
			t.Error("the expired token counts as valid")
		}
		other, err := f.begin(app, f.db)
		if err == nil {
			t.Error("another process starts without a valid token")
		}
		f.board.leave(other)
		next := app
		next.RefreshToken = f.ws.IssueRefreshToken()
		b.SetApp(next)
		synctest.Wait()
		f.works(b)
		f.ok(b.Renewed(f.ctx))
		pass(13 * time.Hour)
		f.works(b)
		f.works(f.started(app))
	})
}

// If an operator gives a refresh token that Slack refuses, or other credentials that are wrong, the bot goes on with
// its stored tokens, and says what is wrong.
func TestWrongCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		app  rotation.App
		want string
	}{
		"id":      {rotation.App{ClientID: "9.9", ClientSecret: app.ClientSecret, RefreshToken: "xoxe-1-other"}, "(invalid_client_id). Copy both"},
		"secret":  {rotation.App{ClientID: app.ClientID, ClientSecret: "fedcba9876543210", RefreshToken: "xoxe-1-other"}, "(bad_client_secret). Copy both"},
		"refresh": {rotation.App{ClientID: app.ClientID, ClientSecret: app.ClientSecret, RefreshToken: "xoxe-1-other"}, "(invalid_refresh_token). Reinstall"},
	} {
		t.Run(name, func(t *testing.T) {
			inFakedTime(t, func(f *fixture) {
				if _, err := f.begin(c.app, f.db); !errors.Is(err, rotation.ErrRefused) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("at the first start: %v", err)
				}
				f.board.bots = nil
				b := f.started(app)
				b.SetApp(c.app)
				pass(time.Minute)
				f.works(b)
				f.log.has(t, c.want)
				if err := b.Renewed(f.ctx); !errors.Is(err, rotation.ErrRefused) {
					t.Errorf("it says %v", err)
				}
				b.SetApp(app)
				pass(7 * time.Hour)
				f.works(b)
				f.ok(b.Renewed(f.ctx))
			})
		})
	}
}

// A process ends after Slack's answer and before the commit. The next process exchanges the same refresh token, which
// Slack accepts for a short time. Later, the bot works with the stored token until that token expires.
func TestEndBeforeCommit(t *testing.T) {
	for name, later := range map[string]time.Duration{"soon": time.Second, "late": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inFakedTime(t, func(f *fixture) {
				b := f.started(app)
				f.end(b)
				pass(6 * time.Hour)
				dying := &readOnly{Store: f.db, commits: 1}
				b, err := f.begin(app, dying)
				f.ok(err)
				f.works(b)
				f.exchanged(2)
				f.log.has(t, "the renewed bot token can't be stored")
				f.end(b)
				pass(later)
				b = f.started(app)
				f.works(b)
				if err := b.Renewed(f.ctx); (err == nil) != (name == "soon") {
					t.Errorf("it says %v", err)
				}
			})
		})
	}
}

// readOnly is a store that commits a number of transactions, and refuses all others until it is mended.
type readOnly struct {
	store.Store
	mu      sync.Mutex
	commits int
	mended  bool
}

func (s *readOnly) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mended = true
}

func (s *readOnly) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commits--; s.commits >= 0 || s.mended {
		return s.Store.Update(ctx, fn)
	}
	return errors.New("the disk is full")
}

// While the store refuses writes, the bot does not use its refresh token up.
func TestStoreRefusesBefore(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		f.end(f.started(app))
		full := &readOnly{Store: f.db}
		b, err := f.begin(app, full)
		f.ok(err)
		pass(7 * time.Hour)
		f.exchanged(1)
		f.log.has(t, "because the store refuses writes: the disk is full")
		full.mend()
		pass(time.Minute)
		f.exchanged(2)
		f.works(b)
		f.ok(b.Renewed(f.ctx))
	})
}

// A process that ends tries once more to store its tokens.
func TestStoreAtTheEnd(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		full := &readOnly{Store: f.db, commits: 1}
		b, err := f.begin(app, full)
		f.ok(err)
		synctest.Wait()
		full.mend()
		f.end(b)
		pass(time.Hour)
		f.works(f.started(app))
		f.exchanged(1)
	})
}

// If the store refuses the renewed tokens, the bot keeps them, and stores them when the store works again.
func TestStoreRefuses(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		f.end(f.started(app))
		pass(7 * time.Hour)
		full := &readOnly{Store: f.db, commits: 1}
		b, err := f.begin(app, full)
		f.ok(err)
		pass(time.Hour)
		f.works(b)
		if b.Renewed(f.ctx) == nil {
			t.Error("it does not say that the token is not stored")
		}
		full.mend()
		pass(time.Minute)
		f.ok(b.Renewed(f.ctx))
		f.end(b)
		f.works(f.started(app))
		f.exchanged(2)
	})
}

// If Slack's answer is lost, the bot tries again soon, while Slack accepts the same refresh token. During an outage of
// Slack, the bot keeps trying.
func TestLostAnswers(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		b := f.started(app)
		lost := 2
		f.answers(func(*http.Response) error {
			if lost--; lost >= 0 {
				return io.ErrUnexpectedEOF
			}
			return nil
		})
		pass(7 * time.Hour)
		f.exchanged(4)
		f.works(b)
		f.ok(b.Renewed(f.ctx))
		setDown := func(down bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.down = down
		}
		setDown(true)
		pass(10 * time.Hour)
		f.works(b)
		if b.Renewed(f.ctx) == nil {
			t.Error("it does not say that the token was not renewed")
		}
		pass(time.Hour)
		setDown(false)
		pass(2 * time.Minute)
		f.works(b)
		f.ok(b.Renewed(f.ctx))
	})
}

// Slack's codes that do not concern the credentials may pass, so the bot tries again.
func TestPassingRefusals(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		b := f.started(app)
		codes := []string{"request_timeout", "team_added_to_org", "accesslimited"}
		f.answers(func(r *http.Response) error {
			if len(codes) > 0 {
				r.Body = io.NopCloser(strings.NewReader(`{"ok":false,"error":"` + codes[0] + `"}`))
				codes = codes[1:]
			}
			return nil
		})
		pass(7 * time.Hour)
		f.log.has(t, "accesslimited")
		f.ok(b.Renewed(f.ctx))
		f.exchanged(5)
	})
}

// A new refresh token of another app is refused while the bot runs.
func TestOtherApp(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		b := f.started(app)
		f.answers(func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), "T0001", "T0002")))
			return err
		})
		next := app
		next.RefreshToken = f.ws.IssueRefreshToken()
		old := b.now()
		b.SetApp(next)
		pass(time.Minute)
		if b.now() != old {
			t.Error("the bot uses the token of another app")
		}
		f.log.has(t, "belongs to another app or workspace")
	})
}

// setRow replaces the row with the tokens.
func (f *fixture) setRow(value string) {
	f.Helper()
	f.ok(f.db.Update(f.ctx, func(tx store.Tx) error {
		s, err := tx.Setting(store.SettingSlackToken)
		if err != nil {
			return err
		}
		s.Value = []byte(value)
		return tx.PutSetting(s)
	}))
}

// row reads the row with the tokens.
func (f *fixture) row() (row settings.SlackToken) {
	f.Helper()
	f.ok(f.db.View(f.ctx, func(r store.Reader) (err error) {
		row, _, err = settings.ReadSlackToken(r)
		return err
	}))
	return row
}

// If the row with the tokens is lost or can't be decrypted while the bot runs, the bot renews the tokens that it has in
// memory, and so writes the row again.
func TestLostRow(t *testing.T) {
	for name, row := range map[string]string{"lost": "{}", "encrypted with another secret": `{"team":"T0001","sealed":"AAAA"}`} {
		t.Run(name, func(t *testing.T) {
			inFakedTime(t, func(f *fixture) {
				b, other := f.started(app), f.started(app)
				pass(time.Hour)
				f.setRow(row)
				pass(2 * time.Minute)
				f.exchanged(2)
				f.ok(b.Renewed(f.ctx))
				f.works(other)
				f.works(f.started(app))
				next := app
				next.RefreshToken = f.ws.IssueRefreshToken()
				b.SetApp(next)
				synctest.Wait()
				f.ok(b.Renewed(f.ctx))
				f.exchanged(3)
			})
		})
	}
}

// A process with another client secret has written a newer row. A bot that can't decrypt the row does not replace it.
// The bot works with its own token, and uses no refresh token that the row lists. With a new refresh token from the
// operator, the bot replaces the row.
func TestNewerRow(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		b := f.started(app)
		pass(time.Hour)
		listed, next := app, app
		listed.RefreshToken, next.RefreshToken = f.ws.IssueRefreshToken(), f.ws.IssueRefreshToken()
		sum := sha256.Sum256([]byte(listed.RefreshToken))
		f.setRow(fmt.Sprintf(`{"sealed":"AAAA","given":["%x"],"issued":"%s"}`, sum, f.now().Format(time.RFC3339)))
		pass(2 * time.Minute)
		f.ok(b.Renewed(f.ctx))
		pass(7 * time.Hour)
		f.works(b)
		if err := b.Renewed(f.ctx); !errors.Is(err, rotation.ErrRefused) || !strings.Contains(err.Error(), "can't be decrypted") {
			t.Errorf("it says %v", err)
		}
		b.SetApp(listed)
		pass(time.Minute)
		f.exchanged(1)
		if row := f.row(); len(row.Given) != 1 {
			t.Errorf("the row is %+v", row)
		}
		b.SetApp(next)
		pass(time.Minute)
		f.exchanged(2)
		f.works(b)
		f.ok(b.Renewed(f.ctx))
		if row := f.row(); len(row.Given) != 3 {
			t.Errorf("the row is %+v", row)
		}
	})
}

// If the row with the tokens is damaged, the bot needs a new refresh token, and replaces the row.
func TestDamagedRow(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		f.end(f.started(app))
		pass(time.Hour)
		f.ok(f.db.Close())
		file, err := os.ReadFile(f.path)
		f.ok(err)
		for at := range file {
			if bytes.HasPrefix(file[at:], []byte(store.SettingSlackToken)) { // bbolt writes a row's value after its key
				file[at+len(store.SettingSlackToken)+20] ^= 1
			}
		}
		f.ok(os.WriteFile(f.path, file, 0o600))
		f.db, err = bolt.Open(f.path, bolt.Options{})
		f.ok(err)
		if _, err := f.begin(app, f.db); !errors.Is(err, rotation.ErrRefused) {
			t.Errorf("it starts: %v", err)
		}
		f.board.bots = nil
		next := app
		next.RefreshToken = f.ws.IssueRefreshToken()
		b := f.started(next)
		f.works(b)
		f.ok(b.Renewed(f.ctx))
		f.works(f.started(next))
		f.exchanged(3)
	})
}

// With another client secret, the stored tokens can't be decrypted.
func TestOtherSecret(t *testing.T) {
	inFakedTime(t, func(f *fixture) {
		f.end(f.started(app))
		other := app
		other.ClientSecret = "fedcba9876543210"
		if _, err := f.begin(other, f.db); !errors.Is(err, rotation.ErrRefused) || !strings.Contains(err.Error(), "can't be decrypted") {
			t.Errorf("it starts: %v", err)
		}
		if row := f.row(); len(row.Given) != 1 || row.Team != "T0001" {
			t.Errorf("the row is %+v", row)
		}
	})
}

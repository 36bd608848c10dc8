package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/cmd/countersign/openstore"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

// TestCatchUp stops the bot for ten minutes and for nine hours, over both transports, with Slack's retries and without.
// During the downtime, people write in channels, threads and direct messages, and edit and delete messages. After the
// restart, the bot answers every message to it once, except deleted messages. This must be true even if the bot is
// killed while it reads the histories, if Slack's retries come late, and if the bot reads the same histories again
// after another start.
//
// The short version tries half of the combinations. This half covers all combinations of any three of the four
// settings. COUNTERSIGN_OUTAGES=2 tries all combinations of the four settings.
func TestCatchUp(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	all := testkit.Size(t, "COUNTERSIGN_OUTAGES", 1) > 1
	for _, overHTTP := range []bool{false, true} {
		for _, retries := range []bool{true, false} {
			for _, lasts := range []time.Duration{10 * time.Minute, 9 * time.Hour} {
				for _, killed := range []bool{false, true} {
					if odd := overHTTP != retries != (lasts < time.Hour) != killed; odd && !all {
						continue
					}
					name := fmt.Sprintf("%s retries=%t %s killed=%t", map[bool]string{true: "http", false: "socket"}[overHTTP], retries, lasts, killed)
					t.Run(name, func(t *testing.T) {
						inFakedTime(t, func(b *synctestHarness) {
							b.http, b.setup.unlimited = overHTTP, false
							b.instead = func(http.Handler) http.Handler {
								return scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(repeats)})
							}
						}, func(b *synctestHarness) {
							b.ws.SetRealRates(true)
							b.setRetries(retries)
							(&catchUpTrial{synctestHarness: b, lasts: lasts}).play(killed)
						})
					})
				}
			}
		}
	}
}

// setRetries sets whether Slack sends unacknowledged events again.
func (b *synctestHarness) setRetries(on bool) {
	b.Helper()
	answer, err := b.client.Post("http://slack.test/faults", "application/json", strings.NewReader(fmt.Sprintf(`{"fault":"retries","on":%t}`, on)))
	b.ok(err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		b.Fatal(answer.Status)
	}
}

// The function "repeats" is a model. In the messages since its last answer, it finds the word after each "say", and
// answers with these words.
func repeats(_ context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	var said []string
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "assistant" {
			break
		}
		words := strings.Fields(m.Content)
		for i := range len(words) - 1 {
			if m.Role == "user" && words[i] == "say" {
				said = append(said, "You said "+words[i+1]+".")
			}
		}
	}
	slices.Reverse(said)
	if len(said) == 0 {
		said = []string{"I was told nothing."}
	}
	return scriptedmodel.Reply{Content: strings.Join(said, " ")}, nil
}

// catchUpTrial is one downtime of the bot.
type catchUpTrial struct {
	*synctestHarness
	lasts time.Duration
	words []string // words that the bot must repeat exactly once
	nots  []string // words that the bot must never repeat
}

// The method "writes" posts a message as a person. If the message has a word after "say", the bot must repeat this word
// once.
func (c *catchUpTrial) writes(who, channel, thread, text string) (ts string) {
	c.Helper()
	ts, err := c.as(who).Say(c.ctx, channel, thread, text)
	c.ok(err)
	if _, word, ok := strings.Cut(text, "say "); ok {
		c.words = append(c.words, word)
	}
	return ts
}

func (c *catchUpTrial) play(killed bool) {
	mine := c.writes("sam", "#support", "", "@Countersign say before")
	theirs := c.writes("teo", "#support", "", "has anybody seen this")
	dm := c.writes("sam", "U0BOT", "", "say hello")
	c.within(time.Minute, "the first are answered", func() bool { return c.idle() && c.answers()["hello"] == 1 })
	c.pass(2 * time.Minute) // in this time, the bot records that it has received everything so far
	c.ok(c.bot.end())
	before := len(c.words)

	third := c.lasts / 3
	c.pass(third)
	c.writes("sam", "#support", "", "@Countersign say channel")
	c.writes("sam", "#support", mine, "say thread")
	c.writes("ingrid", "#support", theirs, "@Countersign say mention")
	c.writes("teo", "#support", theirs, "this is between us")
	c.writes("sam", "U0BOT", "", "say first")
	c.pass(time.Second)
	c.writes("sam", "U0BOT", "", "say second")
	c.writes("sam", "U0BOT", dm, "say inside")
	c.writes("ingrid", "U0BOT", "", "start over")
	wrong := c.writes("sam", "#general", "", "@Countersign what did")
	c.pass(time.Second)
	c.ok(c.as("sam").Edit(c.ctx, "#general", wrong, "@Countersign say edited"))
	c.words = append(c.words, "edited")
	gone, err := c.as("sam").Say(c.ctx, "#general", "", "@Countersign say deleted")
	c.ok(err)
	c.ok(c.as("sam").Delete(c.ctx, "#general", gone))
	c.nots = append(c.nots, "deleted")
	c.pass(2*third - time.Minute)
	// With retries, Slack sends these two events again when the bot is back. If the bot handled "start over" twice, there
	// would be a third conversation.
	c.writes("sam", "#support", "", "@Countersign say late")
	c.writes("ingrid", "U0BOT", "", "start over")
	c.pass(30 * time.Second)
	missed := len(c.words) - before + 2 // 2: "start over" was written twice

	var kills atomic.Int32
	if killed {
		c.becomes(func(a apiCall) callFate {
			if a.method == "conversations.history" && kills.Add(1)%3 == 0 && kills.Load() < 10 {
				return callFatal
			}
			return callFine
		})
	}
	c.start()
	for killed && kills.Load() < 9 {
		<-c.death
		c.ok(c.bot.end())
		c.start()
	}
	c.within(20*time.Minute, "all is answered", func() bool { return c.idle() && len(c.open()) == 0 })
	c.writes("sam", "#support", "", "@Countersign say live")
	c.pass(10 * time.Minute) // in this time, Slack sends its retries
	c.restart()              // after the start, the bot reads the same histories again
	c.pass(5 * time.Minute)
	c.within(time.Minute, "all is done", c.idle)

	answers, twice := c.answers(), 0
	for _, w := range c.words {
		if answers[w] > 1 {
			twice++
		}
		if answers[w] != 1 {
			c.Errorf("%q was answered %d times", w, answers[w])
		}
	}
	for _, w := range c.nots {
		if answers[w] > 0 {
			c.Errorf("%q was answered", w)
		}
	}
	if n := c.heard("start over"); n != 2 {
		c.Errorf("\"start over\" was heard %d times, and was written twice", n)
	}
	if n := c.count("#support", mine, "I was offline from"); n != 1 && c.lasts > 30*time.Minute || n > 0 && c.lasts < 15*time.Minute {
		c.Errorf("the thread says %d times that the bot was away for %s", n, c.lasts)
	}
	c.Logf("missed=%d answered=%d twice=%d", missed, missed-len(c.open()), twice)
}

// open returns the words that the bot has not repeated yet.
func (c *catchUpTrial) open() (left []string) {
	answers := c.answers()
	for _, w := range c.words {
		if answers[w] == 0 {
			left = append(left, w)
		}
	}
	return left
}

// The method "answers" counts the bot's answers in all messages that Slack shows. The key is the word of the person's
// message that the answer repeats.
func (c *catchUpTrial) answers() map[string]int {
	out := map[string]int{}
	for _, m := range c.shown() {
		for i, words := 0, strings.Fields(m.Text); i+2 < len(words); i++ {
			if words[i] == "You" && words[i+1] == "said" {
				out[strings.Trim(words[i+2], ".")]++
			}
		}
	}
	return out
}

// The method "shown" returns all messages of the bot in the channels, threads and direct messages of the test.
func (c *catchUpTrial) shown() (out []workspaceclient.Message) {
	c.Helper()
	read := func(who, channel string) {
		top, err := c.as(who).Messages(c.ctx, channel, "")
		c.ok(err)
		for _, m := range top {
			thread, err := c.as(who).Messages(c.ctx, channel, m.TS)
			c.ok(err)
			out = append(out, thread...)
		}
	}
	read("sam", "#support")
	read("sam", "#general")
	read("sam", "U0BOT")
	read("ingrid", "U0BOT")
	return slices.DeleteFunc(out, func(m workspaceclient.Message) bool { return m.User != "U0BOT" })
}

// count counts the messages in a thread that contain a text.
func (c *catchUpTrial) count(channel, thread, text string) (n int) {
	c.Helper()
	messages, err := c.as("sam").Messages(c.ctx, channel, thread)
	c.ok(err)
	for _, m := range messages {
		if strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// The method "heard" counts the people's messages in the store that consist of exactly this text.
func (c *catchUpTrial) heard(text string) (n int) {
	c.view(func(r store.Reader) error {
		conversations, err := r.ConversationsBefore(time.Now().Add(time.Hour), 1000)
		for _, conv := range conversations {
			messages, err := r.Messages(conv.ID, 0)
			c.ok(err)
			for _, m := range messages {
				if m.Role == store.RoleUser && m.Text == text {
					n++
				}
			}
		}
		return err
	})
	return n
}

// TestCatchUpInAChannelThatIsJoined: while the bot is down, people write in a channel, and then remove the bot from the
// channel. When the bot is invited again, it answers each of these messages once. The bot keeps its records of
// deliveries only for some hours. Even after that time, and even if people remove and invite the bot once more, the bot
// answers each message only once. The bot does not read messages that are older than a day.
func TestCatchUpInAChannelThatIsJoined(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	inFakedTime(t, func(b *synctestHarness) {
		b.instead = func(http.Handler) http.Handler {
			return scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(repeats)})
		}
	}, func(b *synctestHarness) {
		b.setRetries(false)
		c := &catchUpTrial{synctestHarness: b}
		thread := c.writes("sam", "#support", "", "@Countersign say before")
		b.within(time.Minute, "it is answered", func() bool { return b.idle() && c.answers()["before"] == 1 })
		b.pass(2 * time.Minute)
		b.ok(b.bot.end())
		c.writes("sam", "#support", "", "@Countersign say old")
		c.nots = append(c.nots, "old")
		b.pass(22 * time.Hour)
		c.writes("sam", "#support", "", "@Countersign say channel")
		c.writes("sam", "#support", thread, "say thread")
		b.ok(b.as("teo").Remove(b.ctx, "#support", "U0BOT"))
		b.pass(10 * time.Minute)
		b.start()
		b.pass(3 * time.Hour)
		if n := c.answers()["channel"]; n > 0 {
			t.Errorf("the bot is not in the channel, and answered %d times", n)
		}
		for range 2 {
			b.ok(b.bot.workflow.Intake.Forget(b.ctx, remembered))
			b.ok(b.as("teo").Invite(b.ctx, "#support", "U0BOT"))
			b.pass(5 * time.Minute)
			b.within(time.Minute, "all is done", b.idle)
			b.ok(b.as("teo").Remove(b.ctx, "#support", "U0BOT"))
			b.pass(3 * time.Hour)
		}
		c.words = slices.DeleteFunc(c.words, func(w string) bool { return w == "old" })
		answers := c.answers()
		for _, w := range c.words {
			if answers[w] != 1 {
				t.Errorf("%q was answered %d times", w, answers[w])
			}
		}
		for _, w := range c.nots {
			if answers[w] > 0 {
				t.Errorf("%q was answered", w)
			}
		}
	})
}

// TestCatchUpOfANewStore: the bot does not answer a message from before the first start of its store. The bot reads the
// channel after its first start, after a downtime, and after an invitation. The bot answers a message that was written
// later, while the bot was down.
func TestCatchUpOfANewStore(t *testing.T) {
	testkit.SkipIfShort(t)
	path := filepath.Join(t.TempDir(), "new.db")
	inFakedTime(t, func(b *synctestHarness) {
		b.instead = func(http.Handler) http.Handler {
			return scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(repeats)})
		}
	}, func(b *synctestHarness) {
		b.setRetries(false)
		c := &catchUpTrial{synctestHarness: b}
		b.ok(b.bot.end())
		c.writes("sam", "#support", "", "@Countersign say early")
		b.pass(time.Minute)
		b.ok(b.db.Close())
		db, err := openstore.File(path)
		b.ok(err)
		b.db, b.setup.store = db, db
		b.start()
		b.pass(time.Minute)
		b.ok(b.bot.end())
		c.writes("sam", "#support", "", "@Countersign say later")
		b.pass(time.Minute)
		b.start()
		b.within(5*time.Minute, "the later message is answered", func() bool { return b.idle() && c.answers()["later"] == 1 })
		b.ok(b.as("teo").Remove(b.ctx, "#support", "U0BOT"))
		b.ok(b.as("teo").Invite(b.ctx, "#support", "U0BOT"))
		b.pass(5 * time.Minute)
		b.within(time.Minute, "all is done", b.idle)
		if answers := c.answers(); answers["early"] != 0 || answers["later"] != 1 {
			t.Errorf("answered: %v", answers)
		}
	})
}

// TestCatchUpWithoutScope: the bot's token lacks the scope for one kind of channel. The bot can't answer messages that
// people wrote in such channels while the bot was down. The log and /readyz name the missing scope. The bot answers all
// other messages.
func TestCatchUpWithoutScope(t *testing.T) {
	testkit.SkipIfShort(t)
	inFakedTime(t, nil, func(b *synctestHarness) {
		b.setRetries(false)
		c := &catchUpTrial{synctestHarness: b}
		c.writes("sam", "U0BOT", "", "say hello")
		c.within(time.Minute, "it is answered", func() bool { return b.idle() && c.answers()["hello"] == 1 })
		b.ok(b.bot.end())
		b.ws.Withhold("channels:history")
		b.pass(10 * time.Minute)
		c.writes("sam", "#support", "", "@Countersign say unread")
		c.writes("sam", "U0BOT", "", "say direct")
		b.pass(10 * time.Minute)
		b.start()
		b.within(5*time.Minute, "the direct message is answered", func() bool { return b.idle() && c.answers()["direct"] == 1 })
		b.pass(5 * time.Minute)
		if n := c.answers()["unread"]; n > 0 {
			t.Errorf("the unreadable message was answered %d times", n)
		}
		for _, line := range []string{
			`level=ERROR msg="the bot token lacks a scope; add it on the app's page OAuth & Permissions, and reinstall the app" scope=channels:history `,
			`level=WARN msg="channels can't be read after a gap; messages written there during the gap are not answered" channels=`,
		} {
			if n := len(b.log.with(line)); n != 1 {
				t.Errorf("the log says %d times: %s", n, line)
			}
		}
		if lines := b.log.with("channels can't be read after a gap"); len(lines) == 1 && !strings.Contains(lines[0], "missing_scope: channels:history") {
			t.Errorf("the reason is missing: %s", lines[0])
		}
		ready := b.bot.bot.Permissions.Complete(b.ctx)
		if want := "the bot token lacks channels:history (the bot can't receive what people write in threads of public channels, or read what it missed)"; ready == nil || !strings.HasPrefix(ready.Error(), want) {
			t.Errorf("/readyz says %v", ready)
		}
	})
}

// TestCatchUpPace: the bot reads many threads within Slack's rate limits. While the bot reads the threads, it answers
// new questions first.
func TestCatchUpPace(t *testing.T) {
	testkit.SkipIfShort(t)
	const threads = 110
	inFakedTime(t, func(b *synctestHarness) {
		b.setup.unlimited = false
		b.instead = func(http.Handler) http.Handler {
			return scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(repeats)})
		}
	}, func(b *synctestHarness) {
		b.ws.SetRealRates(true)
		b.setRetries(false)
		c := &catchUpTrial{synctestHarness: b}
		var roots []string
		for range threads {
			roots = append(roots, c.writes("teo", "#support", "", "has anybody seen this"))
		}
		b.pass(2 * time.Minute)
		b.ok(b.bot.end())
		b.pass(time.Minute)
		for i, root := range roots {
			text := "this is between us"
			if i == 0 {
				text = "@Countersign say last"
			}
			c.writes("teo", "#support", root, text)
		}
		b.pass(10 * time.Minute)
		began := time.Now()
		b.start()
		b.pass(20 * time.Second)
		c.writes("sam", "U0BOT", "", "say meanwhile")
		b.pass(10 * time.Second)
		if n := c.count("countersign", "", "You said meanwhile"); n != 1 {
			t.Errorf("what was asked meanwhile was answered %d times after 10 s", n)
		}
		if c.count("#support", roots[0], "You said last") > 0 {
			t.Fatal("all was read before; ask earlier")
		}
		for c.count("#support", roots[0], "You said last") == 0 {
			if b.pass(10 * time.Second); time.Since(began) > 10*time.Minute {
				t.Fatal("the mention in a thread is not answered")
			}
		}
		reads := b.made(began, func(a apiCall) bool { return a.method == "conversations.replies" })
		for i, first := range reads {
			n := 0
			for _, call := range reads[i:] {
				if call.at.Before(first.at.Add(time.Minute)) {
					n++
				}
			}
			if n > 50 {
				t.Fatalf("%d threads were read within a minute", n)
			}
		}
		refused := b.made(began, func(a apiCall) bool { return a.status == http.StatusTooManyRequests })
		t.Logf("threads=%d took=%s refused=%d", len(reads), time.Since(began), len(refused))
		if len(reads) < threads || len(refused) > 0 {
			t.Errorf("%d threads were read, and Slack asked to wait %d times", len(reads), len(refused))
		}
	})
}

// TestLostClicks: if a click may have been lost during a downtime, people get one reminder of the waiting requests. The
// reminder says why it was sent. After a short downtime, the bot sends no reminder. At the next start, the bot does not
// repeat the reminder.
func TestLostClicks(t *testing.T) {
	inFakedTime(t, nil, func(b *synctestHarness) {
		b.says("patient waits")
		b.asked("waits")
		b.pass(40 * time.Minute) // the policy's own reminders were sent earlier
		away := func(d time.Duration) {
			b.ok(b.bot.end())
			b.pass(d)
			b.start()
			b.pass(time.Minute)
			b.within(time.Minute, "all is shown", b.idle)
		}
		told := func() (all, why int) {
			for _, m := range b.reminders("teo") {
				all++
				if strings.Contains(m, "If you clicked a button in that time, it did not reach me.") {
					why++
				}
			}
			return all, why
		}
		before, why := told()
		if before != 3 || why != 0 {
			t.Fatalf("%d reminders, %d of them because of a gap", before, why)
		}
		away(3 * time.Minute)
		if n, why := told(); n != before || why != 0 {
			t.Errorf("after a short gap: %d reminders, %d of them because of a gap", n-before, why)
		}
		away(time.Hour)
		if n, why := told(); n != before+1 || why != 1 {
			t.Errorf("after a gap of an hour: %d more reminders, %d because of the gap", n-before, why)
		}
		away(time.Minute)
		if n, why := told(); n != before+1 || why != 1 {
			t.Errorf("after another start: %d more reminders, %d because of the gap", n-before, why)
		}
		b.ok(b.approve("teo", "waits", b.card("waits")))
	})
}

func (b *synctestHarness) reminders(who string) (texts []string) {
	b.Helper()
	messages, err := b.as(who).Messages(b.ctx, "U0BOT", "")
	b.ok(err)
	for _, m := range messages {
		if strings.Contains(m.Text, "Still waits for you") {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// TestQuietRequests: no request arrives over HTTP, although Slack answers the bot's calls. After a while, the bot reads
// the missed messages from Slack. The bot sends no reminders.
func TestQuietRequests(t *testing.T) {
	inFakedTime(t, func(b *synctestHarness) { b.http = true }, func(b *synctestHarness) {
		b.says("patient waits")
		b.asked("waits")
		b.pass(40 * time.Minute)
		before := len(b.reminders("teo"))
		b.ok(b.ws.SetRequestURLs(b.ctx, delivery.URLsAt("http://bot.test/slack/")))
		b.door.SetState(testkit.NetworkRefuses)
		thread := b.says("say unheard")
		b.pass(quiet + time.Minute)
		b.within(time.Minute, "all is shown", b.idle)
		messages, err := b.as("sam").Messages(b.ctx, "#support", thread)
		b.ok(err)
		if last := messages[len(messages)-1].Text; !strings.Contains(last, "You said unheard") {
			t.Errorf("the thread ends with %q", last)
		}
		if n := len(b.reminders("teo")); n != before {
			t.Errorf("%d people were reminded", n-before)
		}
		b.door.SetState(testkit.NetworkWorks)
	})
}

// quiet is a time without requests that is long enough for the bot to read the histories.
const quiet = 31 * time.Minute

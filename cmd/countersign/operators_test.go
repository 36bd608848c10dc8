package main

import (
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers/workflow"
	"countersign/store"
)

const operatorsClients = `clients:
  ci: {token: "sha256:0000000000000000000000000000000000000000000000000000000000000000", agent: support, owner: U0100, tools: ["*"], webhook: {url: "https://ci.example.com/hook", secret: "${CI_WEBHOOK}"}}
`

// opsChannel is a harness whose bot posts notices for the operators in a channel.
type opsChannel struct {
	*synctestHarness
	channel, reader string
}

// The method "notices" returns the current texts of the notices in the channel, the oldest first.
func (b opsChannel) notices() (texts []string) {
	b.Helper()
	messages, err := b.as(b.reader).Messages(b.ctx, b.channel, "")
	b.ok(err)
	for _, m := range messages {
		if strings.HasPrefix(m.Text, "⚠️ ") || strings.HasPrefix(m.Text, "✅ Over") {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// The method "wants" checks the texts of the notices. Each notice must contain the given text.
func (b opsChannel) wants(what string, parts ...string) {
	b.Helper()
	all := b.notices()
	if len(all) != len(parts) {
		b.Fatalf("%s: %d notices are in the channel; want %d:\n%s", what, len(all), len(parts), strings.Join(all, "\n\n"))
	}
	for i, part := range parts {
		if !strings.Contains(all[i], part) {
			b.Errorf("%s: the notice lacks %q:\n%s", what, part, all[i])
		}
	}
}

// switchOff makes the bot record that the receiver of a client's webhook wants no more deliveries.
func (b opsChannel) switchOff() {
	b.Helper()
	client, ok := b.bot.workflow.Policy().Client("ci")
	if !ok {
		b.Fatal("the policy has no client")
	}
	gone := workflow.WebhookFailure{Why: "the receiver answered 410", Gone: true}
	b.ok(b.bot.workflow.Callers.NotTold(b.ctx, store.Timer{Kind: store.TimerWebhook, Ref: "call_0", Lane: "ci"}, client.Webhook.Target(), gone))
}

func (b opsChannel) resume() {
	b.Helper()
	b.ok(b.bot.workflow.Callers.ResumeWebhook(b.ctx, "ci"))
}

// A notice is posted once, although processes are replaced before and after the post, and Slack's answer to the post is
// lost. The notice is edited when the problem ends.
func TestNoticesForTheOperators(t *testing.T) {
	t.Parallel()
	for _, several := range []bool{false, true} {
		t.Run("bot"+amongReplicas(several), func(t *testing.T) {
			t.Parallel()
			inFakedTime(t, func(b *synctestHarness) {
				b.board = boardIf(several)
				b.policy += "operators: {channel: \"#support-approvals\"}\n" + operatorsClients
			}, func(b *synctestHarness) {
				o := opsChannel{b, "#support-approvals", "teo"}
				o.pass(time.Minute)
				o.wants("without a problem")
				o.switchOff()
				o.restart() // before the post
				o.pass(20 * time.Second)
				off := "The webhook of the client ci is switched off since"
				o.wants("the webhook is off", off)
				o.restart()
				o.pass(2 * time.Minute)
				o.wants("after a restart", off)
				o.resume()
				o.pass(10 * time.Second)
				over := "the webhook of the client ci was switched off."
				o.wants("the webhook is on again", over)

				o.pass(time.Hour)
				var posted atomic.Bool
				o.becomes(func(c apiCall) callFate { // Slack posts the notice, and its answer is lost
					switch {
					case posted.Load():
						return callFails
					case c.method == "chat.postMessage":
						posted.Store(true)
						return callUnheard
					}
					return callFine
				})
				o.switchOff()
				o.pass(30 * time.Second)
				o.ok(o.endAll())
				o.becomes(nil)
				o.pass(10 * time.Minute)
				o.start()
				o.pass(2 * time.Minute)
				o.wants("nobody heard that the notice was posted", over, off)
				if !posted.Load() {
					o.Error("the notice was not posted")
				}
			})
		})
	}
}

// A channel that is shared with another organisation gets notices only if the policy names the channel in
// shared_channels. Otherwise /readyz has a line about the notice.
func TestNoticesInASharedChannel(t *testing.T) {
	t.Parallel()
	for allowed, notices := range map[string][]string{"": nil, "shared_channels: [\"#supplier-desk\"]\n": {"The webhook of the client ci"}} {
		inFakedTime(t, func(b *synctestHarness) {
			b.policy += allowed + "operators: {channel: \"#supplier-desk\"}\n" + operatorsClients
		}, func(b *synctestHarness) {
			o := opsChannel{b, "#supplier-desk", "ada"}
			o.switchOff()
			o.pass(time.Minute)
			o.wants("allowed by "+allowed, notices...)
			said := ""
			if err := reportUndelivered(b.bot.workflow)(b.ctx); err != nil {
				said = err.Error()
			}
			if refused := strings.Contains(said, "a notice for the operators for channel:#supplier-desk"); refused != (len(notices) == 0) {
				b.Errorf("allowed by %q: /readyz says %q", allowed, said)
			}
		})
	}
}

// If Slack refuses a card in its channel and to each person, the operators are told. The notice names no people.
func TestOperatorsAreToldOfUnseenCards(t *testing.T) {
	t.Parallel()
	inRefusingSlack(t, func(b *synctestHarness, slack *refusingWhen) {
		text := b.policy + "operators: {channel: \"#supplier-desk\"}\nshared_channels: [\"#supplier-desk\"]\n"
		b.usePolicy(text)
		o := opsChannel{b, "#supplier-desk", "ada"}
		b.restart()
		slack.refuses(func(method string, form url.Values) string {
			if method == "conversations.open" || method == "chat.postMessage" && strings.Contains(form.Get("blocks"), "Approve") {
				return "restricted_action"
			}
			return ""
		})
		b.says("plain 1")
		r := b.asked("1")
		o.pass(time.Minute)
		o.wants("nobody sees the card", "reach nobody since")
		text = o.notices()[0]
		for _, want := range []string{r.ID, "(plain)", "countersign pending", "#support-approvals", "restricted_action"} {
			if !strings.Contains(text, want) {
				b.Errorf("the notice lacks %q:\n%s", want, text)
			}
		}
		for _, person := range []string{"Sam", "U0100", "Teo", "U0002"} {
			if strings.Contains(text, person) {
				b.Errorf("the notice names %q:\n%s", person, text)
			}
		}
		slack.refuses(func(string, url.Values) string { return "" })
		o.pass(5 * time.Minute)
		o.wants("people see the card", "reached nobody. No request waits for this reason any more.")
	})
}

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

// groupPolicy has a role whose members are in three user groups.
var groupPolicy = strings.Replace(synctestPolicy, "lead: {title: Lead, members: [U0002]", `lead: {title: Lead, members: ["@support", "@leads", "@night"]`, 1)

// inGroups runs a test in faked time. Teo, Ingrid, Kenji, Ada and Priya may approve, as members of three user groups.
// The bot observes Slack's rate limits, and Slack applies them. The parameter requests is the number of waiting
// requests. The function fn gets a card for each of them.
func inGroups(t *testing.T, requests int, change func(*synctestHarness), fn func(b *synctestHarness, cards []workspaceclient.Message)) {
	inFakedTime(t, func(b *synctestHarness) {
		b.policy, b.setup.unlimited = groupPolicy, false
		if change != nil {
			change(b)
		}
	}, func(b *synctestHarness) {
		b.ws.AddGroup(workspace.SeedGroup{ID: "S0002", Handle: "leads", Users: []string{"U0002", "U0003"}})
		b.ws.AddGroup(workspace.SeedGroup{ID: "S0003", Handle: "night", Users: []string{"U0004"}})
		b.ws.SetRealRates(true)
		for i := range requests {
			b.says(fmt.Sprint("plain ", i))
			b.pass(3 * time.Second)
		}
		b.within(5*time.Minute, "all cards are shown", b.idle)
		b.pass(time.Minute)
		cards := make([]workspaceclient.Message, requests)
		for i := range cards {
			cards[i] = b.card(fmt.Sprint(i))
		}
		fn(b, cards)
	})
}

func (b *synctestHarness) decided(n string) bool { return b.request(n).State != approvers.Pending }

// seesReply reports whether a person got an ephemeral message with a text in #support-approvals.
func (b *synctestHarness) seesReply(who, words string) bool {
	b.Helper()
	messages, err := b.as(who).Messages(b.ctx, "#support-approvals", "")
	b.ok(err)
	return slices.ContainsFunc(messages, func(m workspaceclient.Message) bool { return m.Ephemeral && strings.Contains(m.Text, words) })
}

func aboutGroups(c apiCall) bool { return strings.HasPrefix(c.method, "usergroups.") }

// Five members of three user groups make 40 clicks about high risk in a minute. The calls that ask Slack about groups
// stay within Slack's limit, no call is refused, and every click counts within a few seconds.
func TestManyClicksAboutGroups(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	const clicks = 40
	inGroups(t, clicks, nil, func(b *synctestHarness, cards []workspaceclient.Message) {
		people := []string{"teo", "ingrid", "kenji", "ada", "priya"}
		began := time.Now()
		for i, card := range cards {
			b.ok(b.approve(people[i%len(people)], fmt.Sprint(i), card))
			b.pass(time.Minute / clicks)
		}
		late := b.within(10*time.Second, "every click counts", func() bool {
			return b.decided(fmt.Sprint(clicks - 1)) // this is the last click, because each person's clicks are handled in order
		})
		b.within(5*time.Minute, "all is done and shown", b.idle)
		var longest time.Duration
		for i := range clicks {
			r := b.request(fmt.Sprint(i))
			if b.runs[fmt.Sprint(i)] != 1 {
				t.Errorf("call %d is %s and ran %d times", i, r.State, b.runs[fmt.Sprint(i)])
			}
			longest = max(longest, r.ClosedAt.Sub(began.Add(time.Duration(i)*time.Minute/clicks)))
		}
		if longest > 7*time.Second {
			t.Errorf("a click waited for %s", longest)
		}
		calls := b.made(began, aboutGroups)
		for i, c := range calls {
			if c.method != "usergroups.list" || c.status != http.StatusOK {
				t.Errorf("%s was answered with status %d", c.method, c.status)
			}
			if i >= 16 && c.at.Sub(calls[i-16].at) < time.Minute {
				t.Errorf("more than 16 calls from %s to %s", calls[i-16].at, c.at)
			}
		}
		t.Logf("%d clicks in a minute: %d calls, the longest wait %s, the last click %s after the minute", clicks, len(calls), longest, late)
	})
}

// Five clicks within half a second need only two calls to Slack: one call for the first click, and one call for all
// other clicks.
func TestClicksOfTheSameMoment(t *testing.T) {
	t.Parallel()
	inGroups(t, 5, slowGroups, func(b *synctestHarness, cards []workspaceclient.Message) {
		began := time.Now()
		for i, who := range []string{"teo", "ingrid", "kenji", "ada", "priya"} {
			b.ok(b.approve(who, fmt.Sprint(i), cards[i]))
			b.pass(100 * time.Millisecond)
		}
		for i := range cards {
			b.within(10*time.Second, "every click counts", func() bool { return b.decided(fmt.Sprint(i)) })
		}
		if calls := b.made(began, aboutGroups); len(calls) != 2 {
			t.Errorf("%d calls", len(calls))
		}
	})
}

// slowGroups delays Slack's answers about groups by three seconds, after Slack has read its data.
func slowGroups(b *synctestHarness) {
	b.front = func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/usergroups.list" {
				h.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			time.Sleep(3 * time.Second)
			for k, v := range answer.Header() {
				w.Header()[k] = v
			}
			w.WriteHeader(answer.Code)
			w.Write(answer.Body.Bytes())
		})
	}
}

// While a call for Teo's click is under way, Ada is removed from her user group, and then clicks. Slack's event about
// the removal is late. Ada's click does not use the answer of Teo's call, and is refused.
func TestRemovedFromGroupBeforeClick(t *testing.T) {
	t.Parallel()
	inGroups(t, 2, slowGroups, func(b *synctestHarness, cards []workspaceclient.Message) {
		b.ok(b.approve("teo", "0", cards[0]))
		b.pass(time.Second)
		b.ok(b.ws.Inject(workspace.Fault{Fault: workspace.FaultLateDelivery, Type: "events_api", Times: 2, DelayMS: 60_000}))
		b.ok(b.ws.SetGroupUsers("S0001", []string{"U0101"}))
		b.ok(b.approve("ada", "1", cards[1]))
		b.within(10*time.Second, "Teo's click counts", func() bool { return b.decided("0") })
		b.within(10*time.Second, "Ada is refused", func() bool { return b.seesReply("ada", "you are not a member of that role") })
		if b.decided("1") {
			t.Error("the click of a person who had left the group counts")
		}
	})
}

// If Slack asks for a wait, clicks wait, and the card stays as it is. If the wait would be too long, the click is
// refused.
func TestClicksWaitForSlacksLimit(t *testing.T) {
	t.Parallel()
	inGroups(t, 3, nil, func(b *synctestHarness, cards []workspaceclient.Message) {
		refusing := time.Now().Add(80 * time.Second)
		refuse := func(c apiCall) callFate {
			if aboutGroups(c) && time.Now().Before(refusing) {
				return callRefused // Retry-After: 30
			}
			return callFine
		}
		b.becomes(refuse)
		began := time.Now()
		b.ok(b.approve("teo", "0", cards[0]))
		b.pass(10 * time.Second)
		b.ok(b.approve("ada", "1", cards[1]))
		b.pass(60 * time.Second)
		if b.decided("0") || b.decided("1") || len(b.made(began, aboutGroups)) != 3 {
			t.Errorf("%d calls in 70 s", len(b.made(began, aboutGroups)))
		}
		for _, n := range []string{"0", "1"} {
			if _, ok := workspaceclient.Button(b.card(n).Blocks, "Approve"); !ok {
				t.Errorf("the card of call %s has no buttons", n)
			}
		}
		for _, n := range []string{"0", "1"} {
			b.within(time.Minute, "the click counts", func() bool { return b.decided(n) })
		}
		if b.seesReply("teo", "Slack could not tell") || b.seesReply("ada", "Slack could not tell") {
			t.Error("a click was refused")
		}
		refusing = time.Now().Add(time.Hour)
		b.ok(b.approve("kenji", "2", cards[2]))
		late := b.within(3*time.Minute, "Kenji is told", func() bool { return b.seesReply("kenji", "Slack could not tell who clicked") })
		if late < 90*time.Second || late > 2*time.Minute {
			t.Errorf("the click was refused after %s", late)
		}
	})
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

const racePolicy = `version: 1
tools:
  count:
    risk: high
    confirm: true
    rules:
      - {when: 'args.n.startsWith("stages")', stages: [{approver: first, quorum: 2}, {approver: second, quorum: 2}]}
      - {when: 'args.n.startsWith("back")', stages: [{approver: all, quorum: 2}]}
approvers:
  all: {members: [%s], max_risk: high, can_approve: ["*"], cards: "#support-approvals"}
  first: {members: [%s], max_risk: high, can_approve: ["*"], cards: "#support-approvals"}
  second: {members: [%s], max_risk: high, can_approve: ["*"], cards: "#finance"}
agents:
  support: {channels: ["#support"], prompt: Count., tools: ["*"]}
`

// deciders is the number of people who race.
const deciders = 16

// TestRaces makes sixteen people act on one card at the same time, through the page's API, the sockets and the store.
// There are several kinds of races. In the first kind, all people approve. In the second kind, some people reject in a
// form. In the third kind, two of eight people and then two of eight other people must approve. In the fourth kind,
// somebody revokes an approval. In the fifth kind, some people approve all calls of a card while other people approve
// one of these calls. Each race must have one outcome. In the end, the bot must have posted every message once, and
// changed it once for each change of the state. No message may have a button other than "Details…". The bot must have
// told each person once about each click that came too late. The history must have a record of each acknowledged click.
//
// The test runs COUNTERSIGN_RACES races (10 with CI=true), for at most COUNTERSIGN_RACE_MINUTES
// minutes. The workflow's own test (approvers/workflow/race_test.go) runs ten times as many races in the same time.
func TestRaces(t *testing.T) {
	t.Parallel()
	races := testkit.Size(t, "COUNTERSIGN_RACES", 2*len(raceKinds))
	if testkit.RaceEnabled {
		races = min(races, len(raceKinds))
	}
	began := time.Now()
	end := began.Add(time.Duration(testkit.Size(t, "COUNTERSIGN_RACE_MINUTES", 8)) * time.Minute)
	r := openRaceHarness(t)
	done := 0
	for done < races && time.Now().Before(end) {
		for _, kind := range raceKinds {
			n := min(kind.atOnce, max(1, races/len(raceKinds)))
			r.round(kind, n)
			done += n
		}
	}
	r.nothingLeft()
	t.Logf("races=%d deciders=%d clicks=%d in %s: %v", done, deciders, r.clicks, time.Since(began).Round(time.Second), r.ends)
}

// raceHarness is the environment of the races.
type raceHarness struct {
	*loadHarness
	names  []string // names of the people who race
	mu     sync.Mutex
	runs   map[string]int // how often the tool ran, by execution
	api    map[string]int // number of the bot's calls to Slack, by "post SURFACE", "update SURFACE" and "ephemeral USER"
	late   map[string]int // how often somebody came too late, by user id
	ends   map[string]int
	refs   []string // the requests and turns whose messages are counted
	rounds int
	clicks int
}

func openRaceHarness(t *testing.T) *raceHarness {
	r := &raceHarness{runs: map[string]int{}, api: map[string]int{}, late: map[string]int{}, ends: map[string]int{}}
	seed := workspace.DemoSeed()
	var ids []string
	for i := range deciders {
		ids, r.names = append(ids, fmt.Sprintf("U1%03d", i)), append(r.names, fmt.Sprintf("person%d", i))
		seed.People = append(seed.People, workspace.SeedPerson{ID: ids[i], Name: r.names[i], RealName: fmt.Sprintf("Person %d", i)})
	}
	for i, c := range seed.Channels {
		if c.Name == "support-approvals" || c.Name == "finance" {
			seed.Channels[i].Members = slices.Compact(slices.Sorted(slices.Values(append(append(slices.Clone(c.Members), "U0BOT"), ids...))))
		}
	}
	list := func(ids []string) string { return strings.Join(ids, ", ") }
	r.loadHarness = openLoadHarness(t, loadConfig{
		seed: seed, policy: fmt.Sprintf(racePolicy, list(ids), list(ids[:deciders/2]), list(ids[deciders/2:])), runs: r.ran, called: r.called,
	})
	return r
}

func (r *raceHarness) ran(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[key]++
}

// The method "called" counts the bot's calls to Slack.
func (r *raceHarness) called(method string, form url.Values) {
	var meta struct {
		Payload struct {
			OutboxID string `json:"surface"`
		} `json:"event_payload"`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch method {
	case "chat.postMessage", "chat.update":
		if err := json.Unmarshal([]byte(form.Get("metadata")), &meta); err != nil {
			r.Errorf("a message that names no outbox message: %s", form.Get("text"))
		}
		r.api[strings.TrimPrefix(method, "chat.")+" "+meta.Payload.OutboxID]++
	case "chat.postEphemeral":
		r.api["ephemeral "+form.Get("user")]++
	}
}

// race is one card, and people's actions on it.
type race struct {
	requests []approvers.Request
	card     workspaceclient.Message
	mu       sync.Mutex
	clicks   int // number of acknowledged clicks
}

// round runs some races of a kind concurrently.
func (r *raceHarness) round(kind raceKind, n int) {
	r.Helper()
	var races []*race
	r.rounds++
	for i := range n {
		if _, err := r.as("sam").Say(r.Context(), "#support", "", fmt.Sprintf("@Countersign %d of %s-%d-%d", kind.calls, kind.name, r.rounds, i)); err != nil {
			r.Fatal(err)
		}
	}
	for _, c := range r.cards(n * kind.calls) {
		i := slices.IndexFunc(races, func(ra *race) bool { return ra.card.TS == c.message.TS })
		if i < 0 {
			races, i = append(races, &race{card: c.message}), len(races)
		}
		races[i].requests = append(races[i].requests, c.request)
	}
	kind.run(r, races)
	for _, ra := range races {
		end := r.over(ra, kind)
		for _, q := range ra.requests {
			r.refs = append(r.refs, q.ID, q.Turn)
		}
		r.ends[kind.name+": "+end]++
		r.clicks += ra.clicks
	}
}

// The method "over" waits until every click on a card was handled and every approved call has run. After that, it
// counts all records that belong to the card.
func (r *raceHarness) over(ra *race, kind raceKind) (end string) {
	r.Helper()
	var records map[string]int
	r.until("the end of a race", func(s store.Reader) (bool, error) {
		records = map[string]int{}
		for i, q := range ra.requests {
			now, err := s.Request(q.ID)
			if err != nil {
				return false, err
			}
			e, err := s.Execution(q.Execution)
			if err != nil || now.State.Open() || now.State == approvers.Consumed && e.State != approvers.ExecutionSucceeded {
				return false, err
			}
			ra.requests[i] = now
			history, err := s.Audit(q.ID)
			if err != nil {
				return false, err
			}
			for _, h := range history {
				records[string(h.Kind)]++
			}
		}
		return r.handled(s)
	})
	end, err := kind.outcome(ra)
	if err == nil {
		err = r.exact(ra, records)
	}
	if err != nil {
		r.Fatalf("%s: %v; %v", kind.name, err, records)
	}
	return end
}

// The method "handled" reports whether no action of people waits in the inbox.
func (r *raceHarness) handled(s store.Reader) (bool, error) {
	left, err := s.Timers(store.TimerInbox, 1)
	return len(left) == 0, err
}

// The method "exact" checks that the history of a card's requests has exactly the expected records. It also checks that
// each acknowledged click led to a decision, a denial, or a revocation.
func (r *raceHarness) exact(ra *race, got map[string]int) error {
	want := map[string]int{}
	clicks := 0
	for _, q := range ra.requests {
		want["proposed"]++
		want["returned"]++
		want["decided"] += len(q.Decisions)
		want["advanced"] += q.Stage
		if !q.RunBy.IsZero() {
			want["approved"]++
		}
		if q.State == approvers.Consumed {
			want["executing"]++
			want["executed"]++
		} else {
			want["closed"]++
		}
		if q.State == approvers.Revoked {
			clicks++
		}
		r.mu.Lock()
		runs := r.runs[q.Execution]
		r.mu.Unlock()
		if (q.State == approvers.Consumed) != (runs == 1) || runs > 1 {
			return fmt.Errorf("a %s call ran %d times", q.State, runs)
		}
	}
	clicks += len(byAll(ra)) + got["denied"]
	delete(got, "shown")
	want["denied"] = got["denied"]
	maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	if !maps.Equal(got, want) {
		return fmt.Errorf("the history has %v, want %v", got, want)
	}
	if clicks != ra.clicks {
		return fmt.Errorf("%d clicks were acknowledged, and %d have their record", ra.clicks, clicks)
	}
	return r.ephemeralReplies(ra)
}

// byAll counts the calls that each click decided. A click on the button "Approve all" decides all calls of its card.
func byAll(ra *race) map[string]int {
	out := map[string]int{}
	for _, q := range ra.requests {
		for _, d := range q.Decisions {
			out[clickOf(d)]++
		}
	}
	return out
}

// clickOf identifies the click that made the decision d. It uses the person and the time of the click.
func clickOf(d approvers.Decision) string { return string(d.By) + " " + d.At.String() }

// ephemeralReplies counts in late, for each person, the clicks on a card that came too late. The bot must answer each
// late click with one ephemeral message. The function nothingLeft checks these messages.
func (r *raceHarness) ephemeralReplies(ra *race) error {
	return r.store.View(r.Context(), func(s store.Reader) error {
		for _, q := range ra.requests {
			history, err := s.Audit(q.ID)
			if err != nil {
				return err
			}
			for _, h := range history {
				if h.Kind == approvers.AuditDenied {
					r.late[h.Actor.User()]++
				}
			}
		}
		return nil
	})
}

// nothingLeft waits until the bot has no work, and counts all messages. The bot must have posted each message once, and
// changed it once for each change of the state. The bot must have told each person once about each late click. No
// button other than "Details…" may be left.
func (r *raceHarness) nothingLeft() {
	r.Helper()
	r.quiet()
	want := map[string]int{}
	for user, n := range r.late {
		want["ephemeral "+user] = n
	}
	r.until("all messages", func(s store.Reader) (bool, error) {
		for _, ref := range r.refs {
			messages, err := s.OutboxMessagesOf(ref)
			if err != nil {
				return false, err
			}
			for _, x := range messages {
				if x.State == store.OutboxWanted {
					return false, nil
				}
				if x.TS != "" {
					want["postMessage "+x.ID], want["update "+x.ID] = 1, int(x.Posts)-1
				}
			}
		}
		return true, nil
	})
	maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	var diff []string
	r.wait("all messages to be sent", func() (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		diff = nil
		for what := range want {
			if r.api[what] < want[what] {
				diff = append(diff, what)
			}
		}
		return len(diff) == 0, nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if !maps.Equal(r.api, want) {
		for what, n := range r.api {
			if want[what] != n {
				r.Errorf("%s: %d times, want %d", what, n, want[what])
			}
		}
	}
	for channel, who := range map[string]string{"C0002": r.names[0], "C0003": r.names[deciders-1]} {
		for _, m := range r.newest(r.as(who), channel, 1000) {
			if slices.ContainsFunc(workspaceclient.Elements(m.Blocks), func(e workspaceclient.Element) bool { return e.ActionID != control.ActArguments }) {
				r.Errorf("a button is left: %s", m.Text)
			}
		}
	}
}

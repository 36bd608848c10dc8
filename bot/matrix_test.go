package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/internal/testkit"
	"countersign/store"
)

// approverCase describes an approver at the time of the action, according to Slack or the policy. It also has the
// expected result.
type approverCase struct {
	name   string
	code   approvers.Code // empty: the approver may decide
	words  string
	strike func(*matrix) // changes the facts after all messages were shown to the approver
}

// matrix is one approver who acts on a call of each risk, in every possible way.
type matrix struct {
	*attackHarness
	identities, refused, allowed int
}

var ways = []string{"the card", "a form", "a direct message", "the Home tab"}

var risks = []approvers.Risk{approvers.Low, approvers.Medium, approvers.High, approvers.Critical}

// crew lets Teo decide calls of every risk, in the channel and by direct message.
func crew(p *approvers.Policy) {
	teo := []approvers.Member{{Kind: approvers.MemberUser, Value: "U0002"}, {Kind: approvers.MemberUser, Value: "U0004"}} // Kenji decides the calls that Teo requests
	for _, r := range risks {
		p.Tools = append(p.Tools, approvers.ToolPolicy{
			Name: "do_" + r.String(), Risk: r, Confirm: true, Stages: []approvers.Stage{{Approver: "crew", Or: []string{"crew-dm"}, Quorum: 1}},
		})
	}
	for name, cards := range map[string]string{"crew": "#support-approvals", "crew-dm": approvers.CardsDM} {
		p.Approvers = append(p.Approvers, approvers.Role{
			Name: name, Title: "Crew", MaxRisk: approvers.Critical, CanApprove: []string{"*"}, Cards: cards, Members: teo,
		})
	}
}

func newMatrix(t *testing.T, adjust ...func(*attackHarness)) *matrix {
	s := &attackHarness{tap: new(recordingTransport), before: map[string]string{}}
	for _, f := range adjust {
		f(s)
	}
	s.harness = newHarness(t, func(h *harness) {
		crew(h.policy)
		h.http = &http.Client{Timeout: 10 * time.Second, Transport: s.tap}
		for _, r := range risks {
			h.tools["do_"+r.String()] = bottest.Tool("do_"+r.String(), `{"type":"object"}`, approvers.Idempotent)
		}
	})
	return &matrix{attackHarness: s}
}

// put makes a person request a call, and waits until all messages about the call are shown.
func (m *matrix) put(asker string, risk approvers.Risk) map[string]target {
	m.t.Helper()
	button := map[bool]string{true: control.ActTyped, false: control.ActApprove}[risk == approvers.Critical]
	card := m.asks(asker, "do_"+risk.String()+` {"order_id":"ORDER"}`, button)
	out := map[string]target{"the card": card, "a form": card}
	m.call("GET", "/people/teo/home", nil)
	m.until("it is shown everywhere", func() bool {
		err := m.store.View(context.Background(), func(r store.Reader) error {
			messages, err := r.OutboxMessagesOf(card.Ref)
			if err != nil {
				return err
			}
			for _, c := range messages {
				if c.To == "user:U0002" && c.State == store.OutboxShown {
					out["a direct message"] = m.at(r, c, card, button)
				}
			}
			home, err := r.OutboxMessagesOf(store.SettingHomes + "/U0002")
			for _, c := range home {
				if c.Kind == store.OutboxHome && c.Posts > 0 {
					out["the Home tab"] = m.at(r, c, card, control.ActReject)
				}
			}
			return err
		})
		home := out["the Home tab"].Ref != "" || asker == "teo" // a requester can't reject their own request there
		return err == nil && out["a direct message"].Ref != "" && home
	})
	return out
}

// The method "at" finds a request on an outbox message by the given button.
func (m *matrix) at(r store.Reader, c store.OutboxMessage, card target, button string) target {
	t := target{order: card.order, channel: c.Channel, ts: c.TS}
	shown, err := r.Rendering(c.ID, c.Posts)
	for _, part := range strings.Split(string(shown.Body), `"action_id":"`+button+`","value":"`)[1:] {
		value, _, _ := strings.Cut(part, `"`)
		if m, wrong := control.ParseButtonToken(value); err == nil && wrong == nil && m.Ref == card.Ref {
			t.ButtonToken = m
		}
	}
	return t
}

// acts makes Teo act on a request. Teo rejects the call on the Home tab, and in the form of a call that is not
// critical. In all other cases, Teo approves the call.
func (m *matrix) acts(way string, t target, risk approvers.Risk, execution string) {
	m.t.Helper()
	why := map[string]string{control.FieldReason: "no"}
	metadata := control.FormToken{ButtonToken: t.ButtonToken, Execution: execution}.String()
	switch {
	case way == "the Home tab":
		m.send(t.form("U0002", control.ActReject, metadata, why))
	case way == "a form" && risk == approvers.Critical:
		m.send(t.form("U0002", control.ActTyped, metadata, map[string]string{control.FieldTyped: t.order}))
	case way == "a form":
		m.send(t.form("U0002", control.ActReject, metadata, why))
	case risk == approvers.Critical:
		m.send(t.press("U0002", control.ActTyped))
	default:
		m.send(t.press("U0002", control.ActApprove))
	}
}

func (m *matrix) execution(t target) string {
	m.t.Helper()
	r, err := m.workflow.Views.Request(context.Background(), t.Ref)
	if err != nil {
		m.t.Fatal(err)
	}
	return r.Execution
}

// The method risks returns the risks of the next case: all of them in CI, and otherwise one, another in each case.
func (m *matrix) risks() []approvers.Risk {
	first := m.identities % len(risks)
	n := min(testkit.Size(m.t, "COUNTERSIGN_RISKS", len(risks)), len(risks))
	return append(risks[first:len(risks):len(risks)], risks[:first]...)[:n]
}

// The method "try" makes Teo act in every way on a call of each of the case's risks. The method checks the results.
func (m *matrix) try(is approverCase) {
	m.t.Helper()
	asker := map[bool]string{true: "teo", false: "sam"}[is.code == approvers.DeniedSelf]
	calls := map[approvers.Risk]map[string]target{}
	of := m.risks()
	m.identities++
	for _, risk := range of {
		calls[risk] = m.put(asker, risk)
	}
	since := m.tap.count()
	if is.strike != nil {
		is.strike(m)
	}
	for _, risk := range of {
		want := 0
		t := calls[risk]["the card"]
		execution := m.execution(t)
		for _, way := range ways {
			if on := calls[risk][way]; on.Ref != "" {
				m.acts(way, on, risk, execution)
				want++
			}
		}
		m.until(fmt.Sprintf("%s: %d refusals for %s risk", is.name, want, risk), func() bool { return len(m.denials(t.Ref)) == want })
		for _, record := range m.denials(t.Ref) {
			if code, _, _ := strings.Cut(record, " "); code != string(is.code) {
				m.t.Errorf("%s, %s risk: recorded as %q, want %s", is.name, risk, record, is.code)
			}
		}
		m.until("they are told", func() bool { return m.tap.times(since, is.words) >= want })
		since = m.tap.count()
		r, err := m.workflow.Views.Request(context.Background(), t.Ref)
		if err != nil || len(r.Decisions) > 0 || r.State == approvers.Rejected {
			m.t.Errorf("%s, %s risk: it was decided: %+v, %v", is.name, risk, r.Decisions, err)
		}
		m.refused += want
	}
	m.restored()
	for _, c := range calls {
		if r, err := m.workflow.Views.Request(context.Background(), c["the card"].Ref); err == nil && r.State == approvers.Pending {
			m.ends(c["the card"], asker)
		}
	}
}

// ends makes Sam withdraw a call if Sam requested the call.
func (m *matrix) ends(t target, asker string) {
	if asker == "sam" {
		m.withdraws(t)
	}
}

// The method "may" makes Teo act in every way, in the given case. Each action is on a separate call, and must succeed.
func (m *matrix) may(is approverCase) {
	m.t.Helper()
	of := m.risks()
	m.identities++
	for i, way := range ways {
		for j := range of {
			risk := risks[(i+j+2)%len(risks)] // begins with a critical call that is decided in its form
			if risk == approvers.Critical && (way == "the card" || way == "a direct message") {
				continue // on this message the click opens the form
			}
			t := m.put("sam", risk)
			if is.strike != nil {
				is.strike(m)
			}
			m.acts(way, t[way], risk, m.execution(t[way]))
			m.until(is.name+" decides a call of "+risk.String()+" risk by "+way, func() bool {
				r, err := m.workflow.Views.Request(context.Background(), t[way].Ref)
				return err == nil && len(r.Decisions) == 1
			})
			m.restored()
			m.allowed++
		}
	}
}

// The function "known" changes Slack's answers about people, and delivers the event user_change.
func known(change func(u, profile map[string]any)) func(*matrix) {
	return func(m *matrix) { m.answersOn("users.info", person(change)) }
}

// The function "silent" replaces Slack's answers about people by the given answer.
func silent(answer string) func(*matrix) {
	return func(m *matrix) { m.answersOn("users.info", func(url.Values) string { return answer }) }
}

func (m *matrix) answersOn(method string, with func(url.Values) string) {
	m.tap.answering(method, with)
	m.changed()
	m.restore = func() {
		m.tap.answering(method, nil)
		m.changed()
	}
}

// The method "changed" delivers the event user_change in Slack's format.
func (m *matrix) changed() {
	m.n++
	raw, err := json.Marshal(payload{"type": "event_callback", "event_id": fmt.Sprint("Ev", m.n), "team_id": "T0001", "event": payload{"type": "user_change", "user": payload{"id": "U0002"}}})
	if err == nil {
		_, err = m.receive(store.InboxEvent, raw)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func is(key string) func(u, profile map[string]any) {
	return func(u, _ map[string]any) { u[key] = true }
}

func under(change func(*approvers.Policy)) func(*matrix) {
	return func(m *matrix) {
		was := m.policy
		m.changes(func(p *approvers.Policy) {
			crew(p)
			change(p)
		})
		m.restore = func() { m.setPolicy(was) }
	}
}

// For calls of every risk, the bot refuses each action of a person who may not decide, with the matching reason. A
// person who may decide is not refused.
func TestIdentityMatrix(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	guest, gone, foreign, robot := "Guests can't decide", "deactivated", "Only members of this workspace", "Bots can't decide"
	nobody := "Slack could not tell who clicked"
	m := newMatrix(t)
	for _, s := range []approverCase{
		{"a deactivated account", approvers.DeniedDeactivated, gone, known(is("deleted"))},
		{"a guest of several channels", approvers.DeniedGuest, guest, known(is("is_restricted"))},
		{"a guest of one channel", approvers.DeniedGuest, guest, known(is("is_ultra_restricted"))},
		{"a stranger", approvers.DeniedForeign, foreign, known(is("is_stranger"))},
		{"a bot", approvers.DeniedBot, robot, known(is("is_bot"))},
		{"a workflow", approvers.DeniedBot, robot, known(is("is_workflow_bot"))},
		{"a connector", approvers.DeniedBot, robot, known(is("is_connector_bot"))},
		{"somebody of another workspace", approvers.DeniedForeign, foreign, known(func(u, _ map[string]any) { u["team_id"] = "T0999" })},
		{"somebody of another enterprise", approvers.DeniedForeign, foreign, known(func(u, _ map[string]any) {
			u["team_id"], u["enterprise_user"] = "T0999", map[string]any{"id": "W0999", "enterprise_id": "E0999"}
		})},
		{"somebody of no workspace", approvers.DeniedForeign, foreign, known(func(u, _ map[string]any) { delete(u, "team_id") })},
		{"somebody whom Slack does not know", approvers.DeniedUnidentified, nobody, silent(`{"ok":false,"error":"user_not_found"}`)},
		{"a scope is missing", approvers.DeniedUnidentified, nobody, silent(`{"ok":false,"error":"missing_scope"}`)},
		{"an answer about somebody else", approvers.DeniedUnidentified, nobody, silent(`{"ok":true,"user":{"id":"U0003","team_id":"T0001"}}`)},
		{"somebody who is in no role any more", approvers.DeniedNotMember, noMember, under(func(p *approvers.Policy) {
			for i := len(p.Approvers) - 2; i < len(p.Approvers); i++ {
				p.Approvers[i].Members = []approvers.Member{{Kind: approvers.MemberUser, Value: "U0003"}}
			}
		})},
		{"a member by an address that is not confirmed", approvers.DeniedNotMember, noMember, func(m *matrix) {
			byAddress(m)
			was := m.restore
			m.answersOn("users.info", person(func(u, _ map[string]any) { u["is_email_confirmed"] = false }))
			undo := m.restore
			m.restore = func() { undo(); was() }
		}},
		{"somebody who changed their address", approvers.DeniedNotMember, noMember, func(m *matrix) {
			byAddress(m)
			was := m.restore
			m.answersOn("users.info", person(func(_, profile map[string]any) { profile["email"] = "teo@elsewhere.example" }))
			undo := m.restore
			m.restore = func() { undo(); was() }
		}},
		{"the requester", approvers.DeniedSelf, "you asked for this", nil},
	} {
		m.try(s)
	}
	m.may(approverCase{name: "a member"})
	m.may(approverCase{name: "a member who has authorized the app", strike: known(is("is_app_user"))})
	m.may(approverCase{name: "a member by their address", strike: byAddress})

	grid := newMatrix(t, func(s *attackHarness) {
		s.tap.answering("auth.test", func(url.Values) string {
			return `{"ok":true,"url":"https://countersign.example/","team":"T","user":"bot","team_id":"T0001","user_id":"U0BOT","bot_id":"B0001","enterprise_id":"E0001"}`
		})
	})
	sister := func(id, enterprise, team string) func(*matrix) {
		return known(func(u, _ map[string]any) {
			u["team_id"], u["enterprise_user"] = team, map[string]any{"id": id, "enterprise_id": enterprise}
		})
	}
	grid.try(approverCase{"somebody of another enterprise", approvers.DeniedForeign, foreign, sister("W0002", "E0999", "T0001")})
	grid.try(approverCase{"somebody of no enterprise", approvers.DeniedForeign, foreign, known(func(u, _ map[string]any) { u["team_id"] = "T0777" })})
	grid.may(approverCase{name: "a member in another workspace of the enterprise", strike: sister("U0002", "E0001", "T0777")})
	grid.may(approverCase{name: "a member who has an id of their own in the enterprise", strike: sister("W0002", "E0001", "T0001")})
	for _, m := range []*matrix{m, grid} {
		if strings.Contains(m.log.String(), "panicked") {
			t.Error(m.log.String())
		}
	}
	t.Logf("identities=%d ways=%d risks=%d: refused=%d accepted=0, each with its own reason; allowed=%d", m.identities+grid.identities, len(ways), len(risks), m.refused+grid.refused, m.allowed+grid.allowed)
}

// byAddress makes the policy name Teo by his e-mail address only.
func byAddress(m *matrix) {
	under(func(p *approvers.Policy) {
		for i := len(p.Approvers) - 2; i < len(p.Approvers); i++ {
			p.Approvers[i].Members = []approvers.Member{{Kind: approvers.MemberEmail, Value: "teo@example.com"}}
		}
	})(m)
}

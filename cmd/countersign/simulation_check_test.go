package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/invariants"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

// checkBooks checks that the store is consistent. The store must be consistent between any two transactions.
func (s *simulation) checkBooks() {
	if s.violation != "" {
		return
	}
	ctx := context.Background()
	err := errors.Join(s.db.Check(ctx), s.db.View(ctx, func(r store.Reader) error { return invariants.Faults(r, s.turns) }))
	if err != nil {
		s.violate("the invariants do not hold:\n%v", err)
	}
}

// checkRest checks that every acknowledged delivery had its effect, and that Slack shows the current state. The
// simulation calls checkRest when no work is in progress.
func (s *simulation) checkRest() {
	if s.violation != "" {
		return
	}
	shown, err := s.slackShows()
	if err != nil {
		s.violate("Slack can't be read: %v", err)
		return
	}
	err = s.db.View(context.Background(), func(r store.Reader) error {
		return errors.Join(s.nothingIsLost(r), s.nothingHangs(r), s.slackIsRight(r, shown), s.historiesAreWhole(r))
	})
	if err != nil {
		s.violate("at rest:\n%v", err)
	}
}

// nothingIsLost checks that every acknowledged delivery was handled and had its effect, and that no message was heard
// twice.
func (s *simulation) nothingIsLost(r store.Reader) error {
	var faults []error
	acts := map[clicked]int{}
	for _, a := range s.acks {
		row, err := r.Inbox(s.rows[a.name])
		if errors.Is(err, store.ErrNotFound) {
			continue // handled long ago, and deleted from the inbox
		}
		if err != nil {
			return err
		}
		if row.HandledAt.IsZero() {
			faults = append(faults, fmt.Errorf("the delivery acknowledged in step %d (%s) is not handled", a.step, a.name))
			continue
		}
		if a.said != nil && row.Note == "" && s.heard[a.said.ts] == 0 && !s.taken[a.said.ts] && !s.early(a) {
			faults = append(faults, fmt.Errorf("the message of %s at %s in %s is lost; it was acknowledged in step %d", a.said.user, a.said.ts, a.said.channel, a.step))
		}
		if a.act != nil && row.Note == "" {
			acts[*a.act]++
		}
	}
	for ts, n := range s.heard {
		if n > 1 {
			faults = append(faults, fmt.Errorf("the message %s was heard %d times", ts, n))
		}
	}
	for act, n := range acts {
		if decides := map[string]bool{"approve": !act.form, "reject": act.form, "approve_typed": act.form}; !decides[act.action] {
			continue
		}
		records, err := r.Audit(act.ref)
		if err != nil {
			return err
		}
		found := 0
		for _, a := range records {
			if a.Actor.User() == act.user && (a.Kind == approvers.AuditDecided || a.Kind == approvers.AuditDenied) {
				found++
			}
		}
		if found == 0 && n > 0 {
			faults = append(faults, fmt.Errorf("%s of %s by %s was acknowledged %d times and left no trace", act.action, act.ref, act.user, n))
		}
	}
	return errors.Join(faults...)
}

// The method "early" reports whether a reply was stored before the message that it replies to. For the bot, such a
// reply is part of a conversation among people, even if the reply is delivered several times.
func (s *simulation) early(a acked) bool {
	return a.said.root != a.said.ts && s.storedIn[a.name] < s.heardIn[a.said.root]
}

// nothingHangs returns an error if some work has stopped before it was complete.
func (s *simulation) nothingHangs(r store.Reader) error {
	var faults []error
	for _, kind := range append([]store.TimerKind{store.TimerInbox, store.TimerThink}, store.ShowTimers...) {
		timers, err := r.Timers(kind, 10)
		if err != nil {
			return err
		}
		for _, t := range timers {
			faults = append(faults, fmt.Errorf("a timer to %s %s is left, due in %s, after %d tries", t.Kind, t.Ref, t.Due.Sub(s.now()), t.Tries))
		}
	}
	open, err := r.OpenRequests(store.RequestCursor{}, 1000)
	if err != nil {
		return err
	}
	for _, req := range open {
		if req.State == approvers.Approved || req.ExpiresAt.Before(s.now()) {
			faults = append(faults, fmt.Errorf("request %s of %s is %s, and expires %s", req.ID, req.Tool, req.State, req.ExpiresAt))
		}
	}
	for _, id := range s.turns {
		turn, err := r.Turn(id)
		if err != nil {
			return err
		}
		if turn.State != approvers.TurnWaiting && !turn.Ended() {
			faults = append(faults, fmt.Errorf("turn %s is %s", id, turn.State))
		}
	}
	return errors.Join(faults...)
}

// historiesAreWhole compares the chain of each call that ran with the records that the chain must contain.
func (s *simulation) historiesAreWhole(r store.Reader) error {
	var faults []error
	for execution, n := range s.ran {
		e, err := r.Execution(execution)
		if err != nil {
			return err
		}
		records, err := r.Audit(e.Chain())
		if err != nil {
			return err
		}
		count := map[approvers.AuditKind]int{}
		for _, a := range records {
			if of := a.Facts["execution"]; of == "" || of == execution || a.Kind == approvers.AuditProposed { // after an edit, the call has another execution
				count[a.Kind]++
			}
		}
		if count[approvers.AuditProposed] != 1 || count[approvers.AuditExecuting] < 1 {
			faults = append(faults, fmt.Errorf("%s ran %d times, and its chain has %v", e, n, count))
		}
		if e.Request != "" && count[approvers.AuditApproved] < 1 {
			faults = append(faults, fmt.Errorf("%s ran, and its chain has no approval: %v", e, count))
		}
		if e.Effect == approvers.Unprotected && count[approvers.AuditExecuting] != 1 {
			faults = append(faults, fmt.Errorf("%s was started %d times", e, count[approvers.AuditExecuting]))
		}
		ended := count[approvers.AuditExecuted] + count[approvers.AuditUnknown]
		if e.State != approvers.ExecutionExecuting && ended != 1 {
			faults = append(faults, fmt.Errorf("%s ended %d times: %v", e, ended, count))
		}
		if e.State == approvers.ExecutionSucceeded && e.ReportedBy == "" && e.Effect != approvers.ReadOnly && n < 1 {
			faults = append(faults, fmt.Errorf("%s is said to have happened", e))
		}
	}
	return errors.Join(faults...)
}

// checkEnd checks the final state after all deadlines have passed.
func (s *simulation) checkEnd() {
	if s.violation != "" {
		return
	}
	err := s.db.View(context.Background(), func(r store.Reader) error {
		var faults []error
		for _, kind := range store.TimerKinds {
			timers, err := r.Timers(kind, 10)
			if err != nil {
				return err
			}
			for _, t := range timers {
				faults = append(faults, fmt.Errorf("a timer to %s %s is left", t.Kind, t.Ref))
			}
		}
		for _, id := range s.turns {
			turn, err := r.Turn(id)
			if err != nil {
				return err
			}
			if !turn.Ended() {
				faults = append(faults, fmt.Errorf("turn %s is %s", id, turn.State))
			}
		}
		return errors.Join(faults...)
	})
	if err != nil {
		s.violate("at the end:\n%v", err)
	}
}

// simulationPosted is a message of the bot in Slack.
type simulationPosted struct {
	TS       string          `json:"ts"`
	Text     string          `json:"text"`
	Blocks   json.RawMessage `json:"blocks"`
	ThreadTS string          `json:"thread_ts"`
	Replies  int             `json:"reply_count"`
	Metadata struct {
		Payload struct {
			OutboxID string  `json:"surface"`
			Part     float64 `json:"part"`
		} `json:"event_payload"`
	} `json:"metadata"`
	channel string
}

// slackShows reads all messages that Slack shows.
func (s *simulation) slackShows() (all []simulationPosted, err error) {
	var channels struct {
		Channels []struct{ ID string }
	}
	if err := s.askSlack("conversations.list", url.Values{"types": {"public_channel,private_channel,im"}, "limit": {"200"}}, &channels); err != nil {
		return nil, err
	}
	for _, c := range channels.Channels {
		var h struct{ Messages []simulationPosted }
		form := url.Values{"channel": {c.ID}, "limit": {"999"}, "include_all_metadata": {"true"}}
		if err := s.askSlack("conversations.history", form, &h); err != nil {
			continue // the bot is not in the channel
		}
		for _, m := range h.Messages {
			m.channel = c.ID
			all = append(all, m)
			if m.Replies == 0 {
				continue
			}
			var thread struct{ Messages []simulationPosted }
			form.Set("ts", m.TS)
			if err := s.askSlack("conversations.replies", form, &thread); err != nil {
				return nil, err
			}
			form.Del("ts")
			for _, m := range thread.Messages {
				if m.ThreadTS != m.TS {
					m.channel = c.ID
					all = append(all, m)
				}
			}
		}
	}
	return all, nil
}

func (s *simulation) askSlack(method string, form url.Values, into any) error {
	form.Set("token", workspace.DemoBotToken)
	client := http.Client{Transport: inProcess{s.ws.Handler()}}
	resp, err := client.PostForm(simulationBase+"/api/"+method, form)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var status struct {
		OK    bool
		Error string
	}
	if err := json.Unmarshal(body, &status); err != nil || !status.OK {
		return fmt.Errorf("%s: %s %w", method, status.Error, err)
	}
	return json.Unmarshal(body, into)
}

// slackIsRight compares the messages that Slack shows with the stored state.
func (s *simulation) slackIsRight(r store.Reader, shown []simulationPosted) error {
	var faults []error
	byMessage := map[string][]simulationPosted{}
	for _, m := range shown {
		if id := m.Metadata.Payload.OutboxID; id != "" && m.Metadata.Payload.Part == 0 {
			byMessage[id] = append(byMessage[id], m)
		}
		faults = append(faults, s.buttonsAreAlive(r, m))
	}
	for id, messages := range byMessage {
		message, err := r.OutboxMessage(id)
		if err != nil {
			faults = append(faults, fmt.Errorf("Slack shows outbox message %s: %w", id, err))
			continue
		}
		if len(messages) > 1 {
			faults = append(faults, fmt.Errorf("Slack shows the %s for %s %d times (outbox message %s)", message.Kind, message.To, len(messages), id))
		}
		if message.State != store.OutboxShown || message.Kind == store.OutboxCardQueue { // the store keeps no version of a notice about a card queue
			continue
		}
		m := messages[0]
		last, err := r.Rendering(id, message.Posts)
		if err != nil {
			return err
		}
		if m.TS != message.TS || m.channel != message.Channel || !strings.Contains(string(last.Body), jsonText(m.Text)) {
			faults = append(faults, fmt.Errorf("Slack does not show the %s for %s as it should; it shows %q", message.Kind, message.To, m.Text))
		}
	}
	open, err := r.OpenRequests(store.RequestCursor{}, 1000)
	if err != nil {
		return err
	}
	for _, req := range open {
		messages, err := r.OutboxMessagesOf(req.ID)
		if err != nil {
			return err
		}
		for _, one := range messages {
			if one.State == store.OutboxShown && len(byMessage[one.ID]) == 0 && one.Kind != store.OutboxNotice {
				faults = append(faults, fmt.Errorf("the %s of %s for %s is said to be shown, and Slack does not have it", one.Kind, req.ID, one.To))
			}
		}
	}
	return errors.Join(faults...)
}

func jsonText(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return text
	}
	return strings.Trim(string(raw), `"`)
}

// leftBehind reports whether a message is in a channel in which the bot can't write. The bot updates such a message
// when it can write in the channel again.
func leftBehind(r store.Reader, m simulationPosted) bool {
	row, err := r.Setting(store.SettingChannelState + m.channel)
	var place struct {
		Lost bool
		Left []string
	}
	return err == nil && json.Unmarshal(row.Value, &place) == nil && place.Lost && slices.Contains(place.Left, m.Metadata.Payload.OutboxID)
}

// deciding lists the actions of buttons that decide a request.
var deciding = []string{"approve", "approve_typed", "reject", "modify", "allow_more", "hand_on"}

// buttonsAreAlive returns an error if a message has deciding buttons for a decided request, unless the message is left
// behind.
func (s *simulation) buttonsAreAlive(r store.Reader, m simulationPosted) error {
	var faults []error
	for _, e := range workspaceclient.Elements(m.Blocks) {
		ref, _, _ := strings.Cut(e.Value, " ")
		if !slices.Contains(deciding, e.ActionID) {
			continue
		}
		req, err := r.Request(ref)
		if err != nil {
			faults = append(faults, fmt.Errorf("a button %s names %q: %w", e.ActionID, ref, err))
			continue
		}
		if req.State != approvers.Pending && !leftBehind(r, m) {
			faults = append(faults, fmt.Errorf("request %s is %s, and has a live button %s in %s at %s (outbox message %s)", ref, req.State, e.ActionID, m.channel, m.TS, m.Metadata.Payload.OutboxID))
		}
	}
	return errors.Join(faults...)
}

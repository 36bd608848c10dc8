package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"countersign/internal/demo/workspace/delivery"
)

// chaosArrival has the parts of a delivery that chaosAccount needs, and the time at which the delivery arrives at the
// bot.
type chaosArrival struct {
	at time.Time

	// These are the fields of an event about a message that was written, edited or deleted.
	message string // ts of the message
	edit    string // Slack's ts of the edit
	text    string
	gone    bool

	// These are the fields of a click or of a submitted form.
	click    string // identifies the click, even if the click arrives several times
	who      string
	act      string // approve, reject (submitting the form), open (the click that opens the form), or withdraw
	request  string
	outboxID string
	ts       string // ts of the clicked message
}

// mishapCounts counts the faults of deliveries by kind. The field "deaf" is the number of lost acknowledgements. The
// field "never" is the number of events whose attempts were all lost.
type mishapCounts struct{ lost, late, twice, deaf, never int }

// mishap decides randomly what happens to a delivery attempt, and records when the delivery arrives.
func (c *chaos) mishap(a delivery.Attempt) (m delivery.Mishap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts++
	if c.fates != nil {
		m = c.draw(a)
	}
	if a.Kind == "events_api" && c.doomed(a) {
		m = delivery.Mishap{Lost: true}
	}
	if m.Again > 0 {
		c.attempts++
	}
	c.count(a, m)
	if m.Lost {
		return m
	}
	if arrival, ok := readArrival(a); ok {
		arrival.at = time.Now().Add(m.Late)
		c.arrivals = append(c.arrivals, arrival)
		if arrival.click != "" {
			c.clicked++
		}
	}
	return m
}

// draw decides randomly what happens to a delivery attempt. No two deliveries arrive at the same moment, because their
// order would be undefined.
func (c *chaos) draw(a delivery.Attempt) (m delivery.Mishap) {
	some := func(most time.Duration) time.Duration { return time.Duration(1 + c.fates.Int64N(int64(most))) }
	m.Late = some(time.Millisecond)
	switch n := c.fates.IntN(100); {
	case n < 12:
		m.Lost = true
	case n < 20:
		m.Late = some(time.Second)
	case n < 26:
		m.Late = some(time.Minute)
	case n < 30:
		m.Late = some(6 * time.Minute)
	case n < 38:
		m.Again = some(5 * time.Minute)
	case n < 42:
		m.Again = some(time.Second)
	case n < 45:
		m.Deaf = true
	}
	return m
}

// doomed decides at the first attempt whether all attempts to deliver an event are lost.
func (c *chaos) doomed(a delivery.Attempt) bool {
	var p struct {
		EventID string `json:"event_id"`
	}
	_ = json.Unmarshal(a.Payload, &p)
	if a.Number == 0 && c.fates != nil && c.fates.IntN(40) == 0 {
		c.lostFor[p.EventID] = true
	}
	return c.lostFor[p.EventID]
}

func (c *chaos) count(a delivery.Attempt, m delivery.Mishap) {
	switch {
	case m.Lost && a.Kind == "events_api" && a.Number == len(retriesOfSlack):
		c.said.never++
	case m.Lost:
		c.said.lost++
	case m.Late > time.Millisecond:
		c.said.late++
	}
	if m.Again > 0 {
		c.said.twice++
	}
	if m.Deaf {
		c.said.deaf++
	}
}

// retriesOfSlack are the delays before Slack's retries of an event.
var retriesOfSlack = []time.Duration{0, time.Minute, 5 * time.Minute}

// readArrival reads the parts of a delivery that chaosAccount needs.
func readArrival(a delivery.Attempt) (chaosArrival, bool) {
	if a.Kind == "events_api" {
		return readChaosEvent(a.Payload)
	}
	if a.Kind == "interactive" {
		return readChaosClick(a.Payload)
	}
	return chaosArrival{}, false
}

func readChaosEvent(raw []byte) (chaosArrival, bool) {
	type said struct {
		Subtype, Text, TS string
		BotID             string `json:"bot_id"`
		Edited            struct{ TS string }
	}
	var p struct {
		Event struct {
			said
			Type, Channel string
			DeletedTS     string `json:"deleted_ts"`
			Message       *said
		}
	}
	if json.Unmarshal(raw, &p) != nil || p.Event.Channel != "C0001" || p.Event.Type != "message" && p.Event.Type != "app_mention" {
		return chaosArrival{}, false
	}
	e := p.Event
	switch {
	case e.Subtype == "message_deleted":
		return chaosArrival{message: e.DeletedTS, gone: true}, true
	case e.Subtype == "message_changed" && e.Message.Subtype == "tombstone":
		return chaosArrival{message: e.Message.TS, gone: true}, true
	case e.Subtype == "message_changed":
		return chaosArrival{message: e.Message.TS, edit: e.Message.Edited.TS, text: e.Message.Text}, e.Message.BotID == ""
	case e.Subtype == "":
		return chaosArrival{message: e.TS, edit: e.Edited.TS, text: e.Text}, e.BotID == ""
	}
	return chaosArrival{}, false
}

func readChaosClick(raw []byte) (chaosArrival, bool) {
	var p struct {
		Type      string
		TriggerID string `json:"trigger_id"`
		User      struct{ ID string }
		Container struct {
			TS string `json:"message_ts"`
		}
		Actions []struct {
			ActionID string `json:"action_id"`
			Value    string
		}
		View struct {
			ID       string
			Metadata string `json:"private_metadata"`
		}
	}
	if json.Unmarshal(raw, &p) != nil {
		return chaosArrival{}, false
	}
	out := chaosArrival{click: p.TriggerID + p.View.ID, who: p.User.ID, ts: p.Container.TS}
	value := p.View.Metadata
	switch {
	case p.Type == "view_submission":
		out.act = "reject"
	case p.Type == "block_actions" && len(p.Actions) > 0:
		value = p.Actions[0].Value
		out.act = map[string]string{"approve": "approve", "reject": "open", "withdraw": "withdraw"}[p.Actions[0].ActionID]
	}
	words := strings.Fields(value)
	if out.act == "" || len(words) < 4 {
		return chaosArrival{}, false
	}
	out.request, out.outboxID = words[0], words[1]
	return out, true
}

// chaosPost identifies one Slack message of an outbox message. A long outbox message has several parts. Each repost
// begins a new round.
type chaosPost struct{ part, round int }

// chaosPlace records that an outbox message was posted: the Slack timestamp of the post, and the time.
type chaosPlace struct {
	ts string
	at time.Time
}

// The method "posted" records a post that Slack accepted.
func (c *chaos) posted(call apiCall) {
	if call.method != "chat.postMessage" || !call.done || call.outboxID == "" {
		return
	}
	var meta struct {
		Payload struct{ Round int } `json:"event_payload"`
	}
	_ = json.Unmarshal([]byte(call.form.Get("metadata")), &meta)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.posts[call.outboxID] == nil {
		c.posts[call.outboxID] = map[chaosPost]int{}
	}
	c.posts[call.outboxID][chaosPost{call.part, meta.Payload.Round}]++
	if call.part == 0 {
		c.placed[call.outboxID] = append(c.placed[call.outboxID], chaosPlace{call.ts, call.answered})
	}
}

func counted(n map[string]int) string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(n)) {
		out = append(out, fmt.Sprintf("%s=%d", what, n[what]))
	}
	return strings.Join(out, " ")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/approvers/workflow"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
	"countersign/cmd/countersign/cli"
	"countersign/internal/visible"
	"countersign/store"
)

// undelivered lists the messages that the bot can't deliver, delete or handle, because Slack refuses a call. Refused
// cards are not in this list.
type undelivered struct {
	Messages  []refusedMessage  `json:"messages,omitempty"`  // messages that Slack refuses in every place where they could be posted
	Leftovers []leftover        `json:"leftovers,omitempty"` // messages that Slack would not delete
	Deferred  *deferredMessages `json:"deferred,omitempty"`  // nil: none
}

// refusedMessage is a message, other than a card, that Slack refuses in every possible place.
type refusedMessage struct {
	ID    string           `json:"id"` // id of the outbox message
	Kind  store.OutboxKind `json:"kind"`
	To    string           `json:"to"`
	Where string           `json:"where"` // the conversation of the message
	Since time.Time        `json:"since"`
	Next  time.Time        `json:"next"` // time of the next attempt
	Cause string           `json:"cause"`
}

// leftover is a message that Slack refused to delete. The buttons of a leftover have no effect.
type leftover struct {
	Kind    store.OutboxKind `json:"kind"`
	Request string           `json:"request,omitempty"`
	store.Leftover
}

// deferredMessages counts people's messages that wait because Slack does not say who wrote them.
type deferredMessages struct {
	Count int       `json:"count"`
	Since time.Time `json:"since"`
	Cause string    `json:"cause"`
}

// readUndelivered reads the messages that the bot can't deliver, delete or handle.
func readUndelivered(ctx context.Context, wf *workflow.Workflow) (u undelivered, err error) {
	all, err := wf.Views.Undelivered(ctx)
	for _, m := range all.Refused {
		u.Messages = append(u.Messages, refusedMessage{m.Message.ID, m.Message.Kind, m.Message.To, whereText(m.Conversation), m.Since.UTC(), m.Next.UTC(), m.Message.LastError})
	}
	for _, l := range all.Leftovers {
		u.Leftovers = append(u.Leftovers, leftover{l.Message.Kind, l.Message.Request, l.Leftover})
	}
	if d := all.Deferred; d.Count > 0 {
		u.Deferred = &deferredMessages{d.Count, d.Since.UTC(), d.Cause}
	}
	return u, err
}

// The method "lines" returns one line for each item.
func (u undelivered) lines() (out []string) {
	for _, m := range u.Messages {
		out = append(out, fmt.Sprintf("Slack refuses %s, since %s: %s. %s. It is tried again at %s",
			m.what(), cli.Moment(m.Since), visible.Line(m.Cause), wording.MendRefusal(m.Cause), cli.Moment(m.Next)))
	}
	for _, l := range u.Leftovers {
		out = append(out, fmt.Sprintf("%s. The deletion is tried again at %s", l.what(), cli.Moment(l.Next)))
	}
	if u.Deferred != nil {
		out = append(out, fmt.Sprintf("%s. %s. Each is tried again for an hour", u.Deferred.what(), wording.MendRefusal(u.Deferred.Cause)))
	}
	return out
}

// kindWords names the kinds of messages that the bot keeps when Slack refuses them.
var kindWords = map[store.OutboxKind]string{
	store.OutboxAnswer: "an answer", store.OutboxFile: "the file of an answer", store.OutboxProblem: "the message that a turn stopped", store.OutboxAttachment: "a file of a run",
	store.OutboxModelQuestion: "a question of the model", store.OutboxElicitation: "a question of a tool", store.OutboxQuestion: "an approver's question",
	store.OutboxUnknown: "the question whether a run took effect", store.OutboxOperators: "a notice for the operators",
}

func (m refusedMessage) what() string {
	what := kindWords[m.Kind]
	if what == "" {
		what = "a message (" + string(m.Kind) + ")"
	}
	if user, direct := strings.CutPrefix(m.To, store.ToUser); direct {
		return visible.Line(what + " in " + m.Where + " and to " + user + " by direct message")
	}
	if strings.HasPrefix(m.To, store.ToConversation) {
		return visible.Line(what + " in " + m.Where)
	}
	return visible.Line(what + " for " + m.To)
}

func (l leftover) what() string {
	of := ""
	if l.Request != "" {
		of = " of request " + l.Request
	}
	return visible.Line(fmt.Sprintf("Slack neither changes nor deletes an old message%s, since %s (%s, message %s: %s). Its buttons do nothing",
		of, cli.Moment(l.Since), l.Channel, l.TS, l.Cause))
}

func (d deferredMessages) what() string {
	what := "1 message of a person waits, because Slack does not say who wrote it"
	if d.Count > 1 {
		what = fmt.Sprintf("%d messages of people wait, because Slack does not say who wrote them", d.Count)
	}
	return fmt.Sprintf("%s, since %s: %s", what, cli.Moment(d.Since), visible.Line(d.Cause))
}

// reportUndelivered returns the check that reports on /readyz the messages that the bot can't deliver, delete or
// handle, because Slack refuses a call. The bot stays ready, and retries the calls to Slack.
func reportUndelivered(wf *workflow.Workflow) func(context.Context) error {
	return func(ctx context.Context) error {
		u, err := readUndelivered(ctx, wf)
		if err != nil {
			return err
		}
		return u.summary()
	}
}

// summary returns an error whose text has, for each kind, the number of messages and the cause for one of them. If
// there are no such messages, summary returns nil.
func (u undelivered) summary() error {
	var parts []string
	if n := len(u.Messages); n > 0 {
		m := u.Messages[0]
		for _, o := range u.Messages {
			if o.Since.Before(m.Since) {
				m = o
			}
		}
		parts = append(parts, fmt.Sprintf("Slack refuses %s, the first since %s: %s: %s", block.Plural(n, "message"), m.Since.Format(time.RFC3339), m.what(), visible.Line(m.Cause)))
	}
	if n := len(u.Leftovers); n > 0 {
		l := u.Leftovers[0]
		parts = append(parts, fmt.Sprintf("Slack neither changes nor deletes %s, one since %s: %s",
			block.Plural(n, "old message"), l.Since.UTC().Format(time.RFC3339), visible.Line(l.Cause)))
	}
	if u.Deferred != nil {
		parts = append(parts, u.Deferred.what())
	}
	if len(parts) == 0 {
		return nil
	}
	return errors.New(strings.Join(parts, "; ") + ". countersign pending lists them")
}

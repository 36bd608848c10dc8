package view

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"countersign/approvers"
	"countersign/store"
)

// Delivery returns the outbox message that a Slack message shows, and the last posted version of the outbox message.
func (v *Reader) Delivery(ctx context.Context, channel, ts string) (s store.OutboxMessage, shown store.Rendering, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		if s, err = r.OutboxMessageAt(channel, ts); err != nil {
			return err
		}
		shown, err = r.Rendering(s.ID, s.Posts)
		return err
	})
	return s, shown, err
}

// Rendering reads one posted version of an outbox message.
func (v *Reader) Rendering(ctx context.Context, message string, post uint64) (shown store.Rendering, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		shown, err = r.Rendering(message, post)
		return err
	})
	return shown, err
}

// StepOf returns the id of the outbox message that shows a call's step in the requester's thread. If Slack does not
// show the current state of such a message, StepOf returns "".
func (v *Reader) StepOf(ctx context.Context, call string) (message string, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		message = ""
		c, err := r.Call(call)
		if err != nil {
			return err
		}
		of, err := r.OutboxMessagesOf(c.Turn)
		for _, s := range of {
			if s.Kind == store.OutboxStep && s.Step == c.Step && s.State == store.OutboxShown {
				message = s.ID
			}
		}
		return err
	})
	return message, err
}

// Untold lists the outbox messages about a turn's steps that Slack never showed, although the bot tried to post them.
func (v *Reader) Untold(ctx context.Context, turn string) (steps []store.OutboxMessage, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		steps = nil
		messages, err := r.OutboxMessagesOf(turn)
		if err != nil {
			return err
		}
		for _, s := range messages {
			if !IsUntold(s) {
				continue
			}
			t, err := r.Timer(s.Rank.Timer(), s.ID)
			if store.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil && t.Tries > 0 {
				steps = append(steps, s)
			}
		}
		return nil
	})
	return steps, err
}

// IsUntold reports whether an outbox message about a step still waits for its first post in Slack.
func IsUntold(s store.OutboxMessage) bool {
	return s.Kind == store.OutboxStep && s.State == store.OutboxWanted && s.TS == "" && s.Posts == 0 && !s.Drafted
}

// HasViewed reports whether an audit record of the request says that a person saw this body. The result rendering is
// the hash of the body.
func (v *Reader) HasViewed(ctx context.Context, request string, who approvers.PersonID, body []byte) (rendering string, yes bool, err error) {
	rendering = HashOf(body)
	err = v.store.View(ctx, func(r store.Reader) error {
		yes, err = WasShown(r, request, who, rendering)
		return err
	})
	return rendering, yes, err
}

// WasShown reports whether an audit record of a request says that a person saw a rendering.
func WasShown(r store.Reader, request string, who approvers.PersonID, rendering string) (bool, error) {
	records, err := r.Audit(request)
	if err != nil {
		return false, err
	}
	for _, a := range records {
		if a.Kind == approvers.AuditShown && a.Actor == who && a.Facts["rendering"] == rendering {
			return true, nil
		}
	}
	return false, nil
}

// HashOf returns the hash that identifies one version of an outbox message.
func HashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

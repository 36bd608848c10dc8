package bot

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/card"
	"countersign/bot/render/thread"
	"countersign/bot/slackapi"
	"countersign/store"
)

// posts writes the Slack messages of outbox messages: it posts, changes and uploads them. If Slack's answer to a post
// was lost, posts finds the message in the channel, so that no message is posted twice. posts does not determine the
// content of a message, and does not record that Slack shows the message.
type posts struct {
	*core
	unconfirmed unconfirmedPosts // posts whose outcome is not recorded yet
	replaced    replacing
}

// messageEvent is the type of the metadata by which a Slack message identifies its outbox message. Every app in the
// workspace can read the metadata, so it only contains ids. The value is a name from an earlier version, because old
// messages in Slack contain it.
const messageEvent = "countersign_surface"

// messageField is the metadata's field with the id of the outbox message.
const messageField = "surface"

// options returns the content of a message as options for slack-go.
func options(m block.Message) []slack.MsgOption {
	out := []slack.MsgOption{
		slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(m.Blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if len(m.Blocks) == 0 { // without blocks people see the text, so no character in it may count as markup
		out = append(out, slack.MsgOptionDisableMarkdown())
	}
	return out
}

// sendInBestForm calls send for one Slack message of an outbox message, in the best form that Slack accepts. part is
// the number of the Slack message. sendInBestForm returns the outbox message with the content that Slack accepted.
func (b *posts) sendInBestForm(ctx context.Context, s store.OutboxMessage, d block.Rendered, part int, send func(...slack.MsgOption) error) (block.Rendered, error) {
	named := slack.MsgOptionMetadata(slack.SlackMetadata{
		EventType: messageEvent, EventPayload: map[string]any{messageField: s.ID, "part": part, "round": s.Round},
	})
	m, whole, err := b.refused.inSimplerForms(ctx, d.Messages[part], block.TextOnly, func(m block.Message) error {
		if b.refused.has(ctx, refusedMetadata) {
			return send(options(m)...)
		}
		err := send(append(options(m), named)...)
		if slackapi.IsMetadataRefused(err) {
			b.refused.markMissing(ctx, refusedMetadata, "a message whose post is not confirmed may appear twice", err)
			err = send(options(m)...)
		}
		return err
	})
	if err != nil {
		return d, err
	}
	return d.With(part, m, whole), nil
}

// update changes the Slack message that shows an outbox message. If a long answer has several Slack messages, only the
// first one ever changes. update returns the outbox message with the content that Slack accepted.
func (b *posts) update(ctx context.Context, s store.OutboxMessage, d block.Rendered) (block.Rendered, error) {
	if s.Drafted {
		if err := b.endStream(ctx, s.Channel, s.TS); err != nil {
			return d, err
		}
	}
	d, err := b.sendInBestForm(ctx, s, d, 0, func(opts ...slack.MsgOption) error {
		_, _, _, err := b.api.UpdateMessageContext(ctx, s.Channel, s.TS, opts...)
		return err
	})
	if err != nil {
		return d, fmt.Errorf("chat.update: %w", slackapi.WithDelay(err))
	}
	return d, nil
}

// post posts those Slack messages of an outbox message that are not in Slack yet. The parameter "there" has the
// timestamps of the messages that are in Slack, by part. If the first message is in Slack, post updates it, because it
// shows an earlier state. post returns s with the channel and the timestamps of the messages, and the content that Slack
// accepted.
func (b *posts) post(ctx context.Context, s store.OutboxMessage, d block.Rendered, at destination, there map[int]string) (_ store.OutboxMessage, _ block.Rendered, err error) {
	s.Parts = nil
	for part := range d.Messages {
		if found, ok := there[part]; ok {
			if part > 0 {
				s.Parts = append(s.Parts, found)
				continue
			}
			s.Channel, s.TS = at.channel, found
			if d, err = b.update(ctx, s, d); err != nil {
				return s, d, err
			}
			continue
		}
		var postedIn, posted string
		var outside bool // Slack may have posted a reply to the channel, outside of the thread
		tried := b.unconfirmed.underWay(s.ID)
		shown, err := b.sendInBestForm(ctx, s, d, part, func(opts ...slack.MsgOption) (err error) {
			if at.thread != "" {
				opts = append(opts, slack.MsgOptionTS(at.thread))
			}
			var message slack.Message
			postedIn, posted, message, err = b.api.PostMessageWithResponseContext(ctx, at.channel, opts...)
			if err == nil && posted == "" {
				err = slackapi.ErrNoTimestamp
			}
			outside = err == nil && at.thread != "" && message.Timestamp != "" && message.ThreadTimestamp == ""
			return err
		})
		if !tried && slackapi.IsNotSent(err) {
			b.unconfirmed.recorded(s.ID)
		} else {
			b.unconfirmed.underWay(s.ID)
		}
		if err != nil {
			return s, d, fmt.Errorf("chat.postMessage: %w", slackapi.WithDelay(err))
		}
		if outside {
			if in, err := b.isInThread(ctx, at, posted); err != nil {
				return s, d, err
			} else if !in {
				return s, d, b.takeBack(ctx, s, postedIn, posted)
			}
		}
		if d = shown; part == 0 {
			s.Channel, s.TS = postedIn, posted
		} else {
			s.Parts = append(s.Parts, posted)
		}
	}
	return s, d, nil
}

// isInThread reports whether Slack shows a message in a thread. If Slack refuses to show the thread, the result is
// false.
func (b *posts) isInThread(ctx context.Context, at destination, ts string) (bool, error) {
	messages, _, _, err := b.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: at.channel, Timestamp: at.thread, Oldest: ts, Inclusive: true, Limit: scanLimit,
	})
	if err != nil && !slackapi.IsRefused(err) {
		return false, fmt.Errorf("conversations.replies: %w", slackapi.WithDelay(err))
	}
	return slices.ContainsFunc(messages, func(m slack.Message) bool { return m.Timestamp == ts }), nil
}

// takeBack deletes a Slack message that the bot posted as a reply in a deleted thread. Slack does not refuse such a
// reply, but posts it to the whole channel. Then the response names no thread. A stand-in for Slack may never name the
// thread, so the caller first asks whether the message is in the thread (isInThread). After the deletion, takeBack
// returns errNoThread. takeBack also returns errNoThread if Slack refuses the deletion. In this case, the bot repeats
// the deletion later (Leftovers). If the call fails for another reason, takeBack returns an error that causes a retry.
// In the retry, findUnnamed finds the message.
func (b *posts) takeBack(ctx context.Context, s store.OutboxMessage, channel, ts string) error {
	_, _, err := b.api.DeleteMessageContext(ctx, channel, ts)
	switch code := slackapi.ErrorCode(err); {
	case err == nil, slackapi.IsMessageLost(code):
	case code == "", slackapi.IsServerFailure(code):
		return fmt.Errorf("chat.delete: %w", slackapi.WithDelay(err))
	default:
		b.Log.WarnContext(ctx, "a thread is gone, so Slack posted its message to the channel, and the message could not be deleted; the deletion is tried again later",
			"message", string(s.Kind), "request", s.Request, "channel", channel, "error", err)
		if err := b.Outbox.LeftOver(ctx, s.ID, channel, ts, slackapi.Explain(err)); err != nil {
			return err
		}
	}
	return fmt.Errorf("chat.postMessage: %w", errNoThread)
}

// errNoThread is Slack's answer to a reply in a deleted thread, if Slack does not post the reply to the channel.
var errNoThread = slack.SlackErrorResponse{Err: "thread_not_found"}

// A click contains a response URL. A call to this URL replaces the clicked message, and does not count for the rate
// limit of chat.update. So when the rate limit of chat.update is nearly reached, the bot updates a decided card through
// the response URL. The bot keeps response URLs only in memory. After any error, the bot uses chat.update instead.

// Slack accepts five calls to a response URL within half an hour. The bot makes fewer calls for updates, so that some
// calls are left for notices to the person who clicked.
const (
	replaceTimes = 3
	replaceFor   = 29 * time.Minute
	maxReplaced  = 1000 // maximum number of outbox messages with a response URL
)

// replacing holds, for each outbox message, a response URL that replaces the Slack message.
type replacing struct {
	mu sync.Mutex
	by map[string]replaceAt
}

type replaceAt struct {
	url   string
	until time.Time
	left  int
}

// noteClick records the response URL of a click on an outbox message.
func (r *replacing) noteClick(message, url string, at time.Time) {
	if url == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]replaceAt{}
	}
	if _, known := r.by[message]; !known && len(r.by) >= maxReplaced {
		for id, old := range r.by {
			if !old.until.After(at) {
				delete(r.by, id)
			}
		}
		if len(r.by) >= maxReplaced {
			return
		}
	}
	r.by[message] = replaceAt{url: url, until: at.Add(replaceFor), left: replaceTimes}
}

// use returns a valid response URL for an outbox message, if there is one, and counts the use.
func (r *replacing) use(message string, now time.Time) (url string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.by[message]
	if !known {
		return "", false
	}
	if at.left--; at.left <= 0 || !at.until.After(now) {
		delete(r.by, message)
	} else {
		r.by[message] = at
	}
	return at.url, at.until.After(now)
}

// change updates the Slack message of an outbox message. If the rate limit of chat.update is nearly reached, change
// updates a decided card through the response URL of a click, if there is one. Otherwise change uses chat.update.
func (b *posts) change(ctx context.Context, vm view.Model, d block.Rendered) (block.Rendered, error) {
	s := vm.Message
	if isDecidedCard(vm) && b.api.UpdatesScarce() {
		if url, ok := b.replaced.use(s.ID, b.Now()); ok {
			shown, err := b.sendInBestForm(ctx, s, d, 0, func(opts ...slack.MsgOption) error {
				_, _, err := b.api.PostMessageContext(ctx, s.Channel, append(opts, slack.MsgOptionReplaceOriginal(url))...)
				return err
			})
			if err == nil {
				return shown, nil
			}
			b.Log.DebugContext(ctx, "a message could not be replaced through the address of a click; it is updated with chat.update instead",
				"message", string(s.Kind), "request", s.Request, "conversation", vm.Conversation.ID, "error", err)
		}
	}
	return b.update(ctx, s, d)
}

// isDecidedCard reports whether an outbox message is a card without open decisions. A pending card needs chat.update,
// because the response of chat.update shows whether the message exists.
func isDecidedCard(s view.Model) bool {
	switch s.Message.Kind {
	case store.OutboxCard, store.OutboxEscalation:
		return s.Request.State != approvers.Pending
	case store.OutboxBundle:
		return len(card.Undecided(s.Calls)) == 0
	}
	return false
}

// Very long answers, and files that a run returned, are uploaded as files. If Slack does not accept the file, the answer
// is posted as messages. In place of a run's file, a note says that the file can't be shown.

// uploaded uploads an outbox message as a file, unless the file is already in Slack. The function returns false if
// Slack does not accept files, or refuses this file.
func (b *posts) uploaded(ctx context.Context, vm view.Model, at destination) (bool, error) {
	s := vm.Message
	if b.refused.has(ctx, refusedFiles) {
		return false, nil
	}
	u := thread.UploadOf(vm)
	if _, doubtful := doubtOf(s, &b.unconfirmed, b.Outbox); doubtful {
		there, err := b.hasFile(ctx, s, at, u.Name)
		if err != nil || there {
			return there, err
		}
	}
	err := b.upload(ctx, s, at, u)
	code := slackapi.ErrorCode(err)
	switch {
	case err == nil:
		return true, nil
	case slackapi.IsFileRefused(err):
		b.Log.WarnContext(ctx, "Slack refuses a file; a long answer is posted in messages, and a file of a tool is only named",
			"message", string(s.Kind), "request", s.Request, "conversation", vm.Conversation.ID, "cause", slackapi.Explain(err))
		return false, nil
	case hasNoMethod(ctx, err):
	case !slackapi.IsRefused(err) || code == errNoThread.Err || slackapi.IsChannelLost(code):
		return false, err
	}
	b.refused.markMissing(ctx, refusedFiles, "long answers are posted in many messages, and files of tools are only named. Does the app have the scope files:write?", err)
	return false, nil
}

// upload uploads a file and shares it. Nobody can see the file before it is shared.
func (b *posts) upload(ctx context.Context, s store.OutboxMessage, at destination, u thread.Upload) error {
	to, err := b.api.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: u.Name, FileSize: len(u.Data)})
	if err != nil {
		return fmt.Errorf("files.getUploadURLExternal: %w", slackapi.WithDelay(err))
	}
	if err := b.api.UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: to.UploadURL, Reader: bytes.NewReader(u.Data), Filename: u.Name}); err != nil {
		return fmt.Errorf("upload: %w", slackapi.WithDelay(err))
	}
	b.unconfirmed.underWay(s.ID)
	_, err = b.api.CompleteUploadExternalContext(ctx, slack.CompleteUploadExternalParameters{
		Files: []slack.FileSummary{{ID: to.FileID, Title: u.Title}}, Channel: at.channel, ThreadTimestamp: at.thread, InitialComment: u.Comment,
	})
	if slackapi.IsNotSent(err) {
		b.unconfirmed.recorded(s.ID)
	} else {
		b.unconfirmed.underWay(s.ID)
	}
	if err != nil {
		return fmt.Errorf("files.completeUploadExternal: %w", slackapi.WithDelay(err))
	}
	return nil
}

// hasFile reports whether the destination already has the bot's file with the given name.
func (b *posts) hasFile(ctx context.Context, s store.OutboxMessage, at destination, called string) (bool, error) {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return false, err
	}
	cursor := ""
	for range scanPages {
		messages, next, err := b.scanHistory(ctx, at, oldestOf(s), cursor)
		if err != nil {
			return false, err
		}
		for _, m := range messages {
			if mine := m.User == me.User || me.Bot != "" && m.BotID == me.Bot; !mine {
				continue
			}
			for _, f := range m.Files {
				if f.Name == called {
					return true, nil
				}
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return false, nil
}

// endStream ends the stream of a message, because Slack does not change a message during its stream.
func (b *posts) endStream(ctx context.Context, channel, ts string) error {
	_, _, err := b.api.StopStreamContext(ctx, channel, ts)
	if err == nil || slackapi.IsRefused(err) || hasNoMethod(ctx, err) { // the message is no longer a stream; if it still is, the change that follows fails
		return nil
	}
	return fmt.Errorf("chat.stopStream: %w", slackapi.WithDelay(err))
}

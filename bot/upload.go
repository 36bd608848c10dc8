package bot

import (
	"bytes"
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/bot/slackapi"
	"countersign/store"
)

// A very long answer is uploaded as a file, and so are files that a run returned. If Slack does not accept files from
// the app, the answer is posted as messages, and for other files a note says that they can't be shown.

// uploaded uploads an outbox message as a file, unless it is already there. It reports false if Slack does not accept
// files.
func (b *Bot) uploaded(ctx context.Context, vm workflow.ViewModel, at destination) (bool, error) {
	s := vm.Message
	if b.noFiles.isSet(b.Now()) {
		return false, nil
	}
	u := render.UploadOf(vm)
	if _, doubtful := b.unconfirmed.unconfirmedSince(s, b.Workflow.Made(s)); doubtful {
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
	case code == "" || slackapi.IsServerFailure(code) || code == errNoThread.Err || slackapi.IsChannelLost(code):
		return false, err
	}
	b.noFiles.set(b.Now())
	b.Log.Warn("Slack takes no files from the app, so long answers are posted in many messages, and what tools bring back is only named; does it have the scope files:write?", "cause", code)
	return false, nil
}

// upload uploads a file and shares it. Nobody sees it before the last step.
func (b *Bot) upload(ctx context.Context, s store.OutboxMessage, at destination, u render.Upload) error {
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

// hasFile reports whether the bot's file is already at the destination.
func (b *Bot) hasFile(ctx context.Context, s store.OutboxMessage, at destination, called string) (bool, error) {
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

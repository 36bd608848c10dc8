package bot

import (
	"context"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers/desk"
	"countersign/store"
)

// An answer that would take many messages is handed over as a file. Where Slack takes no files from the app, what the file would hold is posted.

// fileName names the file of a surface. It is how a file is found again of which nobody knows whether it was uploaded: files bear no other name of the bot's.
func fileName(s store.Surface) string {
	return "answer-" + strings.ToLower(s.ID[max(0, len(s.ID)-12):]) + ".md"
}

// uploaded hands a surface over as a file, unless it is there already. It reports false where Slack takes no files.
func (b *Bot) uploaded(ctx context.Context, sight desk.Sight, at spot) (bool, error) {
	s := sight.Surface
	if b.noFiles.isSet(b.Now()) {
		return false, nil
	}
	called := fileName(s)
	if _, doubtful := b.posts.doubt(s, b.Desk.Made(s)); doubtful {
		there, err := b.hasFile(ctx, s, at, called)
		if err != nil || there {
			return there, err
		}
	}
	err := b.upload(ctx, s, at, called, sight.Text)
	code := errorCode(err)
	switch {
	case err == nil:
		return true, nil
	case code == "" || failing(code) || code == errNoThread.Err || away[code]:
		return false, err
	}
	b.noFiles.set(b.Now())
	b.Log.Warn("Slack takes no files from the app, so long answers are posted in many messages; does it have the scope files:write?", "cause", code)
	return false, nil
}

// upload uploads a text as a file and has Slack show it. Before the last step nobody sees anything of it.
func (b *Bot) upload(ctx context.Context, s store.Surface, at spot, called, text string) error {
	to, err := b.api.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: called, FileSize: len(text)})
	if err != nil {
		return fmt.Errorf("files.getUploadURLExternal: %w", slow(err))
	}
	if err := b.api.UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: to.UploadURL, Content: text, Filename: called}); err != nil {
		return fmt.Errorf("upload: %w", slow(err))
	}
	b.posts.underWay(s.ID)
	_, err = b.api.CompleteUploadExternalContext(ctx, slack.CompleteUploadExternalParameters{
		Files: []slack.FileSummary{{ID: to.FileID, Title: "The whole answer"}}, Channel: at.channel, ThreadTimestamp: at.thread,
	})
	if unsent(err) {
		b.posts.recorded(s.ID)
	} else {
		b.posts.underWay(s.ID)
	}
	if err != nil {
		return fmt.Errorf("files.completeUploadExternal: %w", slow(err))
	}
	return nil
}

// hasFile looks whether a file of the bot's own is where it should be.
func (b *Bot) hasFile(ctx context.Context, s store.Surface, at spot, called string) (bool, error) {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return false, err
	}
	cursor := ""
	for range lookPages {
		messages, next, err := b.look(ctx, at, oldestOf(s), cursor)
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

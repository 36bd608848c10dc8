package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/slack-go/slack"

	"countersign/approvers/desk"
	"countersign/store"
)

// An answer that would take many messages is handed over as a file, and so is what a run brought back beside its text. Where Slack takes no files from the app, what the file of
// an answer would hold is posted, and of any other that it can't be shown.

// upload is a file on its way to Slack.
type upload struct {
	name    string // by which it is found again: files bear no other name of the bot's
	title   string
	comment string // in mrkdwn
	data    []byte
}

// uploadOf is the file that a surface is handed over as.
func uploadOf(sight desk.Sight) upload {
	s := sight.Surface
	id := strings.ToLower(s.ID[max(0, len(s.ID)-12):])
	if s.Kind != store.SurfaceAttachment {
		return upload{name: "answer-" + id + ".md", title: "The whole answer", data: []byte(sight.Text)}
	}
	u := upload{name: id + "-" + slackName(sight.File.Name), title: short(oneLine(sight.File.Name), maxNameShown), data: sight.Data}
	u.comment = "📎 From " + escape(name(sight.Execution.Tool))
	if sight.File.Whole {
		u.comment = "📎 The whole result of " + escape(name(sight.Execution.Tool))
		u.data = []byte(hush(string(sight.Data), []byte(sight.Call.Args), sight.Call.Secrets))
	}
	return u
}

// body is what was handed over, as it is kept: the bytes lie with the run.
func (u upload) body() ([]byte, error) {
	raw, err := json.Marshal(map[string]any{"text": u.comment, "file": u.title, "bytes": len(u.data)})
	if err != nil {
		return nil, fmt.Errorf("encode a file's name: %w", err)
	}
	return raw, nil
}

// slackName is a file's name without what some file systems and Slack's own pages stumble over.
func slackName(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, s)
}

// uploaded hands a surface over as a file, unless it is there already. It reports false where Slack takes no files.
func (b *Bot) uploaded(ctx context.Context, sight desk.Sight, at spot) (bool, error) {
	s := sight.Surface
	if b.noFiles.isSet(b.Now()) {
		return false, nil
	}
	u := uploadOf(sight)
	if _, doubtful := b.posts.doubt(s, b.Desk.Made(s)); doubtful {
		there, err := b.hasFile(ctx, s, at, u.name)
		if err != nil || there {
			return there, err
		}
	}
	err := b.upload(ctx, s, at, u)
	code := errorCode(err)
	switch {
	case err == nil:
		return true, nil
	case code == "" || failing(code) || code == errNoThread.Err || away[code]:
		return false, err
	}
	b.noFiles.set(b.Now())
	b.Log.Warn("Slack takes no files from the app, so long answers are posted in many messages, and what tools bring back is only named; does it have the scope files:write?", "cause", code)
	return false, nil
}

// upload uploads a file and has Slack show it. Before the last step nobody sees anything of it.
func (b *Bot) upload(ctx context.Context, s store.Surface, at spot, u upload) error {
	to, err := b.api.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: u.name, FileSize: len(u.data)})
	if err != nil {
		return fmt.Errorf("files.getUploadURLExternal: %w", slow(err))
	}
	if err := b.api.UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: to.UploadURL, Reader: bytes.NewReader(u.data), Filename: u.name}); err != nil {
		return fmt.Errorf("upload: %w", slow(err))
	}
	b.posts.underWay(s.ID)
	_, err = b.api.CompleteUploadExternalContext(ctx, slack.CompleteUploadExternalParameters{
		Files: []slack.FileSummary{{ID: to.FileID, Title: u.title}}, Channel: at.channel, ThreadTimestamp: at.thread, InitialComment: u.comment,
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

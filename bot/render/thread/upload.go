package thread

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"countersign/approvers/workflow/view"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/store"
)

// Upload is a file to be sent to Slack.
type Upload struct {
	Name    string // only the bot's uploads have such a name, so the bot can find an upload by its name
	Title   string
	Comment string // the comment beside the file, in mrkdwn
	Data    []byte
}

// UploadOf returns the file for an outbox message.
func UploadOf(vm view.Model) Upload {
	s := vm.Message
	id := strings.ToLower(s.ID[max(0, len(s.ID)-12):])
	if s.Kind != store.OutboxAttachment {
		return Upload{Name: "answer-" + id + ".md", Title: "The full answer", Data: []byte(vm.Text)}
	}
	u := Upload{Name: id + "-" + slackName(vm.File.Name), Title: block.Shorten(block.OneLine(vm.File.Name), block.MaxNameShown), Data: vm.Data}
	u.Comment = "📎 From " + block.Escape(block.Name(vm.Execution.Tool))
	if vm.File.Whole {
		u.Comment = "📎 The full result of " + block.Escape(block.Name(vm.Execution.Tool))
		u.Data = []byte(argument.MaskSecrets(string(vm.Data), []byte(vm.Call.Args), vm.Call.Secrets))
	}
	return u
}

// Body returns the recorded facts about an upload. Body leaves out the file's bytes, because they are stored with the
// run.
func (u Upload) Body() ([]byte, error) {
	raw, err := json.Marshal(map[string]any{"text": u.Comment, "file": u.Title, "bytes": len(u.Data)})
	if err != nil {
		return nil, fmt.Errorf("encode the record of a file: %w", err)
	}
	return raw, nil
}

// slackName replaces each character of a file name that is not a letter, a digit, a dot, a hyphen or an underscore.
// Other characters cause problems in some file systems and on Slack's pages.
func slackName(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, s)
}

// Attachment draws a note with the name of a file that a run returned. The function is used if Slack does not accept
// the file itself.
func Attachment(f store.File, tool string) *block.Builder {
	p := new(block.Builder)
	what := "a file"
	if f.Whole {
		what = "a result that is too long for messages"
	}
	p.Para(block.Say("📎 ").Strong(block.Name(tool)).Say(" returned " + what + " that could not be posted here, because Slack refused it:"))
	p.Preformatted(block.Name(f.Name))
	p.Para(block.Say(block.Shorten(block.OneLine(f.Type), block.MaxNameShown) + ", " + sizeOf(f.Size) + ". The operator of this bot finds Slack's reason in the log. The file is kept as long as the conversation is."))
	return p
}

// sizeOf formats a size for people.
func sizeOf(n int) string {
	switch {
	case n < 1<<10:
		return block.Plural(n, "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

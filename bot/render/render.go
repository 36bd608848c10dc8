package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// View has everything that is needed to draw an outbox message: the state to show, and its context.
type View struct {
	view.Model
	WorkspaceURL string          // of the workspace, for links to messages
	Tool         ToolDescription // the tool's own description
	Mentions     []Mention       // people and groups to mention on a card in a channel
	Home         *HomeTab        // content of a Home tab
	Version      string          // version of the program, for the foot of a Home tab; empty: it is not shown
	Reader       Reader          // the person for whom the message is drawn, if there is only one
	print        string          // fingerprint of this version; the buttons of the version contain it

	Progress map[string]RunProgress // reported progress of runs, by execution
}

// Rendered is a drawn outbox message: one Slack message, or several for a very long answer.
type Rendered struct {
	Messages []Message
	Expired  bool          // the message has expired and must be removed
	Shows    []store.Shown // the shown requests; each entry says whether all arguments are shown
}

// Draw renders an outbox message. Draw is pure: the same view gives the same messages.
func Draw(plain View) (Rendered, []byte, error) {
	var err error
	if plain.print, err = plain.fingerprint(); err != nil {
		return Rendered{}, nil, err
	}
	d := plain.render()
	for i := range d.Messages {
		plain.Reader.Localize(&d.Messages[i])
	}
	body, err := d.Body()
	return d, body, err
}

// Body returns the messages in the form in which they are stored.
func (d Rendered) Body() (body []byte, err error) {
	if len(d.Messages) == 1 {
		return d.Messages[0].Body()
	}
	if body, err = json.Marshal(d.Messages); err != nil {
		return nil, fmt.Errorf("encode messages: %w", err)
	}
	return body, nil
}

// With returns the outbox message with m in place of one of its Slack messages. The parameter whole says whether m
// shows everything. If whole is false, people can't approve a request on the outbox message.
func (d Rendered) With(part int, m Message, whole bool) Rendered {
	d.Messages = slices.Clone(d.Messages)
	d.Messages[part] = m
	if !whole {
		d.Shows = slices.Clone(d.Shows)
		for i := range d.Shows {
			d.Shows[i].Whole = false
		}
	}
	return d
}

// fingerprint returns a hash of the content. The hash distinguishes the versions of an outbox message.
func (v View) fingerprint() (string, error) {
	v.print = ""
	first, err := json.Marshal(v.render().Messages)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", v.Message.Kind, err)
	}
	sum := sha256.Sum256(first)
	return hex.EncodeToString(sum[:8]), nil
}

// ToolDescription is what a tool's source says about the tool.
type ToolDescription struct {
	description string
	claims      []string // properties, each in a word or two
	required    []string // the arguments that the tool requires, in the order of its schema
}

// DescribeTool returns the description of a call's tool, if the tool has not changed since the call was made.
func DescribeTool(tools workflow.Tools, s view.Model) ToolDescription {
	if s.Execution == nil || tools == nil {
		return ToolDescription{}
	}
	tool, ok := tools.Tool(s.Execution.Tool)
	if !ok || tool.Hash != s.Execution.ToolHash {
		return ToolDescription{}
	}
	return ToolDescription{description: Clip(OneLine(tool.Description), MaxNote), claims: tool.Claims.Words(), required: approvers.RequiredArguments(tool.Schema)}
}

func (v View) render() Rendered { //nolint:cyclop // one case for each kind of message
	switch v.Message.Kind {
	case store.OutboxCard, store.OutboxEscalation:
		return v.card()
	case store.OutboxBundle:
		return v.bundle()
	case store.OutboxCardQueue:
		return v.cardQueue()
	case store.OutboxStep:
		return Single(v.step())
	case store.OutboxDraft: // drafts are drawn elsewhere, while they are written
		return Single(Paragraph(Say("The agent is still writing…")))
	case store.OutboxAnswer:
		return v.answer()
	case store.OutboxFile:
		return v.file()
	case store.OutboxElicitation:
		return Single(v.elicitation())
	case store.OutboxAttachment:
		return Single(v.attachment())
	case store.OutboxProblem:
		return Single(v.problem())
	case store.OutboxQueued:
		return v.queued()
	case store.OutboxMessageEdit:
		return v.messageEdit()
	case store.OutboxUnknown:
		return v.unknownOutcome()
	case store.OutboxStandIn:
		return Single(v.standIn())
	case store.OutboxQuestion:
		return Single(v.question())
	case store.OutboxNotice:
		d := Single(v.notice())
		d.Expired = v.late()
		return d
	case store.OutboxModelQuestion:
		return Single(v.modelQuestion())
	case store.OutboxGrant:
		return Single(v.grant())
	case store.OutboxPause:
		return Single(v.pause())
	case store.OutboxHead:
		return Single(v.head())
	case store.OutboxReport:
		return v.weeklyReport()
	case store.OutboxOperators:
		return operatorNotice(v)
	case store.OutboxHome:
		return v.home()
	case store.OutboxStandstill:
		return Single(v.standstill())
	case store.OutboxGap:
		return Single(gap(v))
	}
	p := new(BlockBuilder)
	p.Para(Say("This version of the bot can't show what belongs here."))
	return Single(p)
}

func Single(p *BlockBuilder) Rendered { return Rendered{Messages: []Message{p.Message()}} }

// token returns a button token for this version.
func (v View) token(ref string) string {
	return ButtonToken{Ref: ref, Message: v.Message.ID, Post: v.Message.Posts + 1, Print: v.print}.String()
}

// title returns a role's title.
func (v View) title(role string) string { return Name(RoleTitle(v.Policy, role)) }

// stageTitle names the approvers of a stage: its roles, and the user group that they must be in.
func (v View) stageTitle(st approvers.Stage) string {
	return shorten(OneLine(st.Title(v.Policy)), maxStageName)
}

// permalink returns the address of a message, or "" if the workspace's address is not known.
func (v View) permalink(channel, ts, thread string) string {
	if v.WorkspaceURL == "" || channel == "" || ts == "" {
		return ""
	}
	link := v.WorkspaceURL + "archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
	if thread != "" && thread != ts {
		link += "?thread_ts=" + thread + "&cid=" + channel
	}
	return link
}

// riskWords describes a risk in words, with a coloured sign. Only the policy's risk level determines whether the words
// say that a call can't be undone. Claims of the tool's source do not count. No declaration says that a call can be
// undone, so the words do not say this either.
func riskWords(r approvers.Risk, e approvers.Effect) (sign, words string) {
	undo := ""
	switch {
	case e == approvers.ReadOnly:
		undo = " · reads only"
	case !canBeUndone(r, e):
		undo = " · can't be undone"
	}
	sign = map[approvers.Risk]string{approvers.Low: "🟢", approvers.Medium: "🟡", approvers.High: "🟠", approvers.Critical: "🔴"}[r]
	return sign, strings.ToUpper(r.String()[:1]) + r.String()[1:] + " risk" + undo
}

// canBeUndone reports whether a call can be undone according to its risk level in the policy. canBeUndone returns true
// for a call that only reads, because such a call leaves nothing to undo.
func canBeUndone(r approvers.Risk, e approvers.Effect) bool {
	return r < approvers.High || e == approvers.ReadOnly
}

// whatHappens returns one sentence about a call's effect: the policy's preview, or the sentence that the tool would
// run.
func whatHappens(preview, tool string) string {
	if preview = strings.TrimSpace(Visible(preview)); preview != "" {
		return Clip(strings.ReplaceAll(preview, "\n", " ⏎ "), maxHeadline)
	}
	return Name(approvers.ToolWords(tool))
}

// inFull describes a call's effect. Without a preview, inFull includes the arguments.
func inFull(preview string, tool string, args []byte, secrets []string) string {
	what := whatHappens(preview, tool)
	if strings.TrimSpace(preview) == "" {
		if brief := oneLineArguments(string(args), secrets); brief != "" {
			what += " " + brief
		}
	}
	return what
}

// linkButton returns a button that opens an address.
func linkButton(words, url string) slack.BlockElement {
	return button(ActLink, words, "", slack.StyleDefault).WithURL(url)
}

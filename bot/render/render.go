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

// View has everything that is needed to draw an outbox message: the state to show, and its context. Each kind of
// message has a type or a function of its own, which gets only the data that it shows (render).
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

// With replaces one Slack message of the outbox message by m, and returns the new outbox message. The parameter whole
// says whether m shows everything. If whole is false, people can't approve a request on the outbox message.
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
		return newCard(v).draw(*v.Request)
	case store.OutboxBundle:
		return newBundle(v).draw()
	case store.OutboxCardQueue:
		return cardQueue(v.CardQueue)
	case store.OutboxStep:
		return Single(newStep(v).draw())
	case store.OutboxDraft: // drafts are drawn elsewhere, while they are written
		return Single(Paragraph(Say("The agent is still writing…")))
	case store.OutboxAnswer:
		return newAnswer(v).draw()
	case store.OutboxFile:
		return restOfAnswer(v.Text)
	case store.OutboxElicitation:
		return Single(elicitation(v.version(), *v.Elicitation, *v.Call))
	case store.OutboxAttachment:
		return Single(attachment(*v.File, v.Execution.Tool))
	case store.OutboxProblem:
		return Single(newThreadNotice(v).problem())
	case store.OutboxQueued:
		return newThreadNotice(v).queued()
	case store.OutboxMessageEdit:
		return messageEdit(v.version(), wordsUnder(v.Policy), v.Turn.ID, v.Calls, v.MessageEdit)
	case store.OutboxUnknown:
		return newUnknownRun(v).draw()
	case store.OutboxStandIn:
		return Single(standIn(*v.Absence, v.Message, v.Policy, v.Now))
	case store.OutboxQuestion:
		return Single(question(v.version(), wordsUnder(v.Policy), *v.Request))
	case store.OutboxNotice:
		return newNotice(v).draw(*v.Request)
	case store.OutboxModelQuestion:
		return Single(modelQuestion(v.version(), *v.Call, v.Turn.Requesters))
	case store.OutboxGrant:
		return Single(newGrantMessage(v).draw())
	case store.OutboxPause:
		return Single(pauseMessage(v.version(), v.Pause))
	case store.OutboxHead:
		return Single(auditHead(*v.Head))
	case store.OutboxReport:
		return weeklyReport(v.Report, v.Message, titles{v.Policy}, v.Now)
	case store.OutboxOperators:
		return operatorNotice(v.Notice, v.Message, titles{v.Policy})
	case store.OutboxHome:
		return newHome(v).draw()
	case store.OutboxStandstill:
		return Single(newThreadNotice(v).standstill())
	case store.OutboxGap:
		return Single(gap(v.Gap))
	}
	p := new(BlockBuilder)
	p.Para(Say("This version of the bot can't show what belongs here."))
	return Single(p)
}

// The following methods return the parts of a view that several kinds of messages need.

func (v View) version() version { return version{message: v.Message, print: v.print} }

func (v View) origin() origin {
	return origin{workspace: workspace(v.WorkspaceURL), conversation: v.Conversation}
}

func (v View) decisionParts() decisionParts {
	return decisionParts{requestWords: wordsUnder(v.Policy), version: v.version(), mentions: v.Mentions}
}

func (v View) callWords() callWords {
	return callWords{requestWords: wordsUnder(v.Policy), pause: v.Pause, progress: v.Progress}
}

func (v View) runWords() runWords {
	return runWords{
		requestWords: wordsUnder(v.Policy), workspace: workspace(v.WorkspaceURL),
		to: v.Message.To, execution: v.Execution, call: v.Call, later: v.Later, cards: v.Cards, pause: v.Pause,
	}
}

func Single(p *BlockBuilder) Rendered { return Rendered{Messages: []Message{p.Message()}} }

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

// whatHappens returns one sentence about a call's effect: the policy's preview or, without a preview, the words of the
// tool's name.
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

package bot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// scene is a surface as it is drawn: what is to be seen, and what the drawing needs to know beside the state.
type scene struct {
	desk.Sight
	url    string   // the workspace's, for links to messages
	about  about    // what the call's tool does
	calls  []ping   // who is called to a card in a channel, so that they notice it
	tab    *homeTab // what is on a Home tab
	reader reader   // whose eyes it is for, where it is one person's
	print  string   // fingerprint of this version, in its buttons

	readings map[string]reading // how far runs say they are, by execution
}

// drawing is a surface drawn: one message, or several for a very long answer.
type drawing struct {
	messages []message
	over     bool          // its time is over: it is to be taken away
	shows    []store.Shown // the requests that it shows, each with whether its arguments are all there
}

// draw draws a surface. It is pure: the same sight gives the same drawing.
func draw(plain scene) (drawing, []byte, error) {
	s := plain.Sight
	var err error
	if plain.print, err = plain.fingerprint(); err != nil {
		return drawing{}, nil, err
	}
	d := plain.draw()
	for i := range d.messages {
		plain.reader.localize(&d.messages[i])
	}
	var body []byte
	if len(d.messages) == 1 {
		body, err = d.messages[0].body()
	} else if body, err = json.Marshal(d.messages); err != nil {
		err = fmt.Errorf("encode %s: %w", s.Surface.Kind, err)
	}
	return d, body, err
}

// fingerprint tells versions of a surface apart by what they show.
func (s scene) fingerprint() (string, error) {
	s.print = ""
	first, err := json.Marshal(s.draw().messages)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", s.Surface.Kind, err)
	}
	sum := sha256.Sum256(first)
	return hex.EncodeToString(sum[:8]), nil
}

// about is what is known of a tool from its source.
type about struct {
	description string
	claims      []string // of its nature, each as a part of a sentence that begins with "it"
}

// aboutTool is what a call's tool is said to do, if the tool is still the one that the call was made for.
func aboutTool(tools desk.Tools, s desk.Sight) about {
	if s.Execution == nil || tools == nil {
		return about{}
	}
	tool, ok := tools.Tool(s.Execution.Tool)
	if !ok || tool.Hash != s.Execution.ToolHash {
		return about{}
	}
	return about{description: clip(oneLine(tool.Description), maxNote), claims: tool.Claims.Words()}
}

func (s scene) draw() drawing {
	switch s.Surface.Kind {
	case store.SurfaceCard, store.SurfaceEscalation:
		return s.card()
	case store.SurfaceBundle:
		return s.bundle()
	case store.SurfaceLine:
		return s.line()
	case store.SurfaceStep:
		return one(s.step())
	case store.SurfaceDraft: // it is drawn as it is written; nothing else asks for it
		return one(paragraph(say("The agent is still writing…")))
	case store.SurfaceAnswer:
		return s.answer()
	case store.SurfaceFile:
		return s.file()
	case store.SurfaceElicit:
		return one(s.elicitation())
	case store.SurfaceAttachment:
		return one(s.attachment())
	case store.SurfaceProblem:
		return one(s.problem())
	case store.SurfaceQueued:
		return s.queued()
	case store.SurfaceReworded:
		return s.reworded()
	case store.SurfaceUnknown:
		return s.unknown()
	case store.SurfaceStandIn:
		return one(s.standIn())
	case store.SurfaceQuestion:
		return one(s.question())
	case store.SurfaceNotice:
		d := one(s.notice())
		d.over = s.late()
		return d
	case store.SurfaceInquiry:
		return one(s.inquiry())
	case store.SurfaceGrant:
		return one(s.grant())
	case store.SurfacePause:
		return one(s.pause())
	case store.SurfaceHead:
		return one(s.head())
	case store.SurfaceHome:
		return s.home()
	case store.SurfaceStandstill:
		return one(s.standstill())
	}
	p := new(page)
	p.para(say("This version of the bot can't show what belongs here."))
	return one(p)
}

func one(p *page) drawing { return drawing{messages: []message{p.message()}} }

// mark names this version for a button.
func (s scene) mark(ref string) string {
	return mark{Ref: ref, Surface: s.Surface.ID, Post: s.Surface.Posts + 1, Print: s.print}.String()
}

// title is a role's title.
func (s scene) title(role string) string { return name(titleOf(s.Policy, role)) }

// stageTitle names whom a stage is for: its roles, and the user group that they have to be in.
func (s scene) stageTitle(st approvers.Stage) string {
	return short(oneLine(st.Title(s.Policy)), maxStageName)
}

// permalink is the address of a message; empty where the workspace's isn't known.
func (s scene) permalink(channel, ts, thread string) string {
	if s.url == "" || channel == "" || ts == "" {
		return ""
	}
	link := s.url + "archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
	if thread != "" && thread != ts {
		link += "?thread_ts=" + thread + "&cid=" + channel
	}
	return link
}

// riskWords say a risk in words, with a sign of its colour.
func riskWords(r approvers.Risk, e approvers.Effect) (sign, words string) {
	undo := map[approvers.Risk]string{
		approvers.Low: "reads only", approvers.Medium: "changes something that can be changed back",
		approvers.High: "hard or impossible to undo, or sensitive", approvers.Critical: "money, law or the public; treat it as final",
	}[r]
	if e == approvers.ReadOnly && r > approvers.Low {
		undo = "changes nothing, but what it reads is sensitive or costly"
	}
	sign = map[approvers.Risk]string{approvers.Low: "🟢", approvers.Medium: "🟡", approvers.High: "🟠", approvers.Critical: "🔴"}[r]
	return sign, strings.ToUpper(r.String()[:1]) + r.String()[1:] + " risk: " + undo
}

// whatHappens says in one sentence what a call would do: the policy's preview, or that the tool would run.
func whatHappens(preview, tool string) string {
	if preview = strings.TrimSpace(Visible(preview)); preview != "" {
		return clip(strings.ReplaceAll(preview, "\n", " ⏎ "), maxHeadline)
	}
	return "Run " + name(tool)
}

// inFull is what a call would do, with its arguments where no preview says it.
func inFull(preview string, tool string, args []byte, secrets []string) string {
	what := whatHappens(preview, tool)
	if strings.TrimSpace(preview) == "" {
		if brief := briefly(string(args), secrets); brief != "" {
			what += " " + brief
		}
	}
	return what
}

// linkButton leads to another message.
func linkButton(words, url string) slack.BlockElement {
	return button(actLink, words, "", slack.StyleDefault).WithURL(url)
}

package agent

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// Tool is a function that the model can call; [Func] makes one from a Go function. The policy sets the tool's risk and
// its approvers. The tool does not.
type Tool struct {
	// Name identifies the tool in the policy and for the model. A name has 1 to 64 letters, digits, "_", "." and "-".
	Name string
	// Description tells the model what the tool does and when to use it, in at most 1024 characters.
	Description string
	// Schema is the JSON Schema (2020-12 unless it declares another draft) of the arguments, which are an object.
	// References must stay within the schema. Arguments that Schema does not name are refused, unless
	// additionalProperties is true or a schema.
	Schema json.RawMessage
	// Effect says whether a second run of a call would take effect again. Effect determines how a run is handled after
	// a crash.
	Effect approvers.Effect
	// Timeout limits one run. The default is 30 seconds.
	Timeout time.Duration
	// Run runs the tool. The arguments were validated against the schema and, where the policy requires it, approved by
	// people.
	//
	// The model receives the returned text, which is JSON or plain words. An error means that nothing was done. The
	// model and people read the error's text, so it should be one sentence without secrets. If the tool does not know
	// whether it acted, the error must wrap ErrOutcomeUnknown. A repeatable tool then runs again. For any other tool,
	// people are asked.
	Run func(ctx context.Context, in Invocation) (string, error)
	// Asks marks a tool whose calls are answered by the people of the conversation. The Run of such a tool is nil. The
	// arguments are a question and, optionally, options.
	Asks bool

	// Preview describes the effect of a call in one sentence, before anybody decides. Preview must not change anything.
	// If Preview is nil, only the policy's preview is used, if there is one.
	Preview func(ctx context.Context, in Invocation) (string, error)
	// Definition is the definition from the tool's source, byte for byte. The pinned hash is computed from it. If nil,
	// the fields above are the whole definition.
	Definition json.RawMessage
	// Claims are the source's unverified claims about the tool. People see them as claims of the source. Claims never
	// lower a risk.
	Claims workflow.Claims
	// Presumed is the risk if the policy does not name the tool. Zero means unknown.
	Presumed approvers.Risk

	fits  func(args json.RawMessage) error // for a typed function: refuses arguments that the schema admits but the type does not
	fault error                            // why the function's types can't be used
}

// Invocation is one run of a tool.
type Invocation struct {
	// Key is the idempotency key: the execution's id, which is the same for every retry of this run. A tool that is
	// declared idempotent must act only once for each key.
	Key string
	// Args are the exact approved bytes.
	Args json.RawMessage
	// Conversation and Turn identify the origin of the call. Request is the approval request. If the call has no
	// approval request, Request is empty.
	Conversation, Turn, Request string
	// Asker is the last person who wrote before the model made the call.
	Asker approvers.PersonID
	// About returns Slack's profile of Asker as JSON: name, title, time zone, local time, language.
	About func(ctx context.Context) (string, error)
	// Result returns the full result of an earlier run of the same conversation, by its execution id.
	Result func(ctx context.Context, run string) (string, error)
	// Progress reports the progress of the run to the people in the thread. Progress does not block.
	Progress func(Progress)
	// Attach adds a file to the result. The limits are [MaxFile], [MaxFiles] and [MaxFilesSize]. For a file beyond a
	// limit, Attach returns an error that wraps [ErrFile]. People find the file in the thread; the model receives its
	// name, type and size.
	Attach func(File) error
	// Ask shows a form to the asker and waits at most ten minutes for the answer. Meanwhile the run's timer pauses. A
	// run may ask up to five times. An error means that nobody was asked. It wraps [ErrForm].
	Ask func(ctx context.Context, f Form) (Reply, error)
}

// Progress is the progress of a run.
type Progress struct {
	Done, Total float64 // Total 0 means that it is unknown
	Text        string
}

// File is a part of a result that is not text for the model: an image, a document.
type File struct {
	Name string
	Type string // the media type, such as image/png
	Data []byte
}

// Form is a question of a running tool to its asker.
type Form struct {
	From   string          // the name of the party that asks, for people
	Text   string          // the question
	Schema json.RawMessage // JSON Schema of the answer: an object of plain fields. Nil: the form has a URL instead
	URL    string          // address for the asker to visit
}

// Reply is the outcome of a form.
type Reply struct {
	Action ReplyAction
	Values json.RawMessage // an object that the form's schema admits; only for an accepted form
}

// ReplyAction is the asker's response to a form.
type ReplyAction string

// The responses to a form. A form that nobody answered is cancelled.
const (
	ReplyAccepted  ReplyAction = "accept"
	ReplyDeclined  ReplyAction = "decline"
	ReplyCancelled ReplyAction = "cancel"
)

// ErrOutcomeUnknown means that a tool does not know whether it acted, for example after a timeout or a broken
// connection. The tool's error wraps ErrOutcomeUnknown.
var ErrOutcomeUnknown = errors.New("it is unknown whether this happened")

// ErrRefused matches every error that [Refused] returns, with errors.Is.
var ErrRefused = errors.New("the tool refused")

// Refused returns the error for a call that the tool's source declined. The error's text is the source's answer.
func Refused(said string) error { return refusal(said) }

type refusal string

func (r refusal) Error() string { return string(r) }

func (r refusal) Is(target error) bool { return target == ErrRefused }

// ErrNotRun means that a run was not started, because the tool is missing or differs from the approved one. The tool's
// error wraps ErrNotRun. People then read that the call was not run, and not that it failed.
var ErrNotRun = errors.New("it was not run")

// ErrTool means that a tool can't be registered. The wrapping error names the tool and says what to change.
var ErrTool = errors.New("tool not registered")

const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = time.Hour
	// maxDescription is the limit of the chat-completions API, in characters.
	maxDescription = 1024
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// check returns the fault of the tool's plain fields, or "".
func (t Tool) check() string {
	switch {
	case !toolName.MatchString(t.Name):
		return `a name has 1 to 64 letters, digits, "_", "." and "-"`
	case t.Description == "":
		return "the description is missing; the model chooses tools by it"
	case len([]rune(t.Description)) > maxDescription:
		return fmt.Sprintf("the description has %d characters; the model's interface takes %d", len([]rune(t.Description)), maxDescription)
	case t.fault != nil:
		return t.fault.Error()
	case t.Effect != approvers.ReadOnly && t.Effect != approvers.Idempotent && t.Effect != approvers.Unprotected:
		return fmt.Sprintf("its effect is %q; write approvers.ReadOnly, approvers.Idempotent or approvers.Unprotected", t.Effect)
	case t.Timeout < 0 || t.Timeout > maxTimeout:
		return fmt.Sprintf("the timeout is %s; it must be between 0 and %s", t.Timeout, maxTimeout)
	case t.Run == nil && !t.Asks:
		return "there is no Run function"
	case t.Run != nil && t.Asks:
		return "people answer it (Asks), so it can't have a Run function"
	}
	return ""
}

// hash returns a hash over all information about the tool that the model and the approvers get. Any change of this
// information changes the hash.
func (t Tool) hash() string {
	h := sha256.New()
	parts := []string{"countersign/tool/v1", t.Name, t.Description, string(t.Schema), string(t.Effect)}
	if t.Definition != nil {
		parts = append(parts, string(t.Definition))
	}
	for _, part := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

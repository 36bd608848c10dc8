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

// Tool is a function that the model can call. [Func] makes a Tool from a Go function. The policy, and not the tool,
// sets the risk and the approvers.
type Tool struct {
	// Name identifies the tool in the policy and for the model. A name has 1 to 64 letters, digits, "_", "." and "-".
	Name string
	// Description tells the model what the tool does and when to use it, in at most 1024 characters.
	Description string
	// Schema is the JSON Schema of the arguments, which are an object. If Schema declares no draft, the draft is 2020-12.
	// References must stay within the schema. Arguments that Schema does not name are refused, unless additionalProperties
	// is true or a schema. The same applies to the fields of objects in the arguments, unless the schema of the object
	// describes no fields, such as {"type":"object"}: it then allows any fields.
	Schema json.RawMessage
	// Effect says whether a repeated run of a call takes effect twice. After a crash, Effect determines whether the
	// run is repeated.
	Effect approvers.Effect
	// Timeout limits one run. The default is 30 seconds.
	Timeout time.Duration
	// Run runs the tool. The arguments are valid according to the schema. If the policy requires approval, people
	// have approved the arguments.
	//
	// The model receives the returned text, which is JSON or plain text. An error means that nothing was done. The model
	// and people read the error's text, so the text should be one sentence without secrets. If the function does not know
	// whether it acted, its error must wrap ErrOutcomeUnknown. Then an idempotent tool runs again, and the run of a
	// read-only tool counts as failed. For any other tool, people are asked for the outcome. If an idempotent tool runs
	// again, every error counts as an unknown outcome, because the earlier run may have acted.
	Run func(ctx context.Context, in Invocation) (string, error)
	// Asks marks a tool whose calls are answered by the people of the conversation. The Run of such a tool is nil. The
	// arguments are a question and, optionally, options.
	Asks bool

	// Preview describes the effect of a call in one sentence for the approvers. Preview must not change anything.
	// Preview may be nil. The policy can define a preview instead.
	Preview func(ctx context.Context, in Invocation) (string, error)
	// Definition is the JSON definition from the tool's source. The pinned hash is computed from its bytes, without
	// spaces between JSON tokens. If Definition is nil, the fields above are the whole definition.
	Definition json.RawMessage
	// Claims are the source's unverified statements about the tool. Cards show claims as statements of the source.
	// Claims never lower a risk.
	Claims workflow.Claims
	// Presumed is the tool's risk if the policy does not name the tool. Zero means that the risk is unknown.
	Presumed approvers.Risk

	fits  func(args json.RawMessage) error // for a typed function: refuses arguments that its type can't hold
	fault error                            // why the function's types can't be used
}

// Invocation is one run of a tool.
type Invocation struct {
	// Key is the idempotency key: the execution's id, which is the same for every retry of this run. A tool that is
	// declared idempotent must act only once for each key.
	Key string
	// Args are the exact stored bytes of the arguments. If people approved the call, they approved these bytes.
	Args json.RawMessage
	// Conversation and Turn identify the origin of the call. Request is the approval request. If the call has no
	// approval request, Request is empty.
	Conversation, Turn, Request string
	// Asker is the author of the last message before the call.
	Asker approvers.PersonID
	// About returns Slack's profile of Asker as JSON: name, title, time zone, local time, language.
	About func(ctx context.Context) (string, error)
	// Result returns the full result of an earlier run of the same conversation. run is the execution id of the
	// earlier run.
	Result func(ctx context.Context, run string) (string, error)
	// Progress reports the progress of the run to the people in the thread. Progress does not block.
	Progress func(Progress)
	// Attach adds a file to the result. The limits are [MaxFile], [MaxFiles] and [MaxFilesSize]. For a file beyond a
	// limit, Attach returns an error that wraps [ErrFile]. The bot posts the file in the thread. The model receives
	// the file's name, type and size.
	Attach func(File) error
	// Ask shows a form to the asker and waits at most ten minutes for the answer. The run's timer is paused during
	// the wait. One try of a run may ask up to five times. If nobody was asked, Ask returns an error that wraps
	// [ErrForm].
	Ask func(ctx context.Context, f Form) (Reply, error)
}

// Progress is the progress of a run.
type Progress struct {
	Done, Total float64 // the completed work, and the whole work; if Total is 0, the whole work is unknown
	Text        string
}

// File is a file of a result, such as an image or a document. People receive the file. The model receives only the
// file's name, type and size.
type File struct {
	Name string
	Type string // the media type, such as image/png
	Data []byte
}

// Form is a question of a running tool to the asker of the call.
type Form struct {
	From   string          // for people: the name of the program that asks
	Text   string          // the question
	Schema json.RawMessage // JSON Schema of the answer: an object of plain fields; nil: the form has a URL
	URL    string          // address that the asker should visit
}

// Reply is the outcome of a form.
type Reply struct {
	Action ReplyAction
	Values json.RawMessage // an object that is valid according to the form's schema; set only for an accepted form
}

// ReplyAction is the asker's response to a form.
type ReplyAction string

// The responses to a form. A form without an answer counts as cancelled.
const (
	ReplyAccepted  ReplyAction = "accept"
	ReplyDeclined  ReplyAction = "decline"
	ReplyCancelled ReplyAction = "cancel"
)

// ErrOutcomeUnknown means that it is unknown whether a tool acted, for example after a timeout or a broken
// connection. The tool's error wraps ErrOutcomeUnknown.
var ErrOutcomeUnknown = errors.New("it is unknown whether this happened")

// ErrRefused matches every error that [Refused] returns, with errors.Is.
var ErrRefused = errors.New("the tool refused")

// Refused returns the error for a call that the tool's source has refused. The error's text is the source's answer.
func Refused(said string) error { return refusal(said) }

type refusal string

func (r refusal) Error() string { return string(r) }

func (r refusal) Is(target error) bool { return target == ErrRefused }

// ErrNotRun means that a run was not started, because the tool is missing, is not available, or differs from the
// approved tool, or because nothing was sent to the tool's server. The tool's error wraps ErrNotRun. People then read
// that the call was not run.
var ErrNotRun = errors.New("it was not run")

// NotSent returns the error of a run whose request was certainly not sent. The parameter why is the reason. The error
// wraps [ErrNotRun]. There is one exception: if a pause or a shutdown ended the context of a read-only or idempotent
// run, the error is why, and the bot runs the call later.
func NotSent(ctx context.Context, effect approvers.Effect, why error) error {
	cause := context.Cause(ctx)
	interrupted := errors.Is(cause, workflow.ErrPaused) || errors.Is(cause, errStopping)
	if interrupted && effect != approvers.Unprotected || errors.Is(why, ErrNotRun) {
		return why
	}
	return fmt.Errorf("%w: %w", ErrNotRun, why)
}

// ErrTool means that a tool can't be registered. The wrapping error names the tool and says what to change.
var ErrTool = errors.New("tool not registered")

const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = time.Hour
	// maxDescription is the chat-completions API's limit for a description, in characters.
	maxDescription = 1024
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// check returns the first fault of the tool's fields, or "".
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

// hash returns a hash of the tool's name, description, schema and effect, and of its Definition if there is one.
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

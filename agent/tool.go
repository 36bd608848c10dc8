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
	"countersign/approvers/desk"
)

// Tool is something that the model may call; [Func] makes one of a Go function. What risk it bears and who must allow it is no part of it: the policy says so.
type Tool struct {
	// Name is how the policy and the model call it: 1 to 64 letters, digits, "_", "." and "-".
	Name string
	// Description tells the model what the tool does and when to use it, in at most 1024 characters.
	Description string
	// Schema is the JSON Schema (2020-12 unless it says otherwise) of the arguments, which are an object. References stay
	// within it. Names that it does not list are refused, unless it sets additionalProperties to true or to a schema.
	Schema json.RawMessage
	// Effect says what a second run would do, and so what happens after a crash.
	Effect approvers.Effect
	// Timeout bounds one run. Zero is 30 seconds.
	Timeout time.Duration
	// Run does it. The arguments were held against the schema and, where the policy asks for that, allowed by people.
	//
	// The text that it returns is what the model is given: JSON, or plain words. An error means that nothing was done, and
	// its text is given to the model and shown to people: one sentence, no secrets. A tool that can't tell whether
	// it acted wraps ErrOutcomeUnknown; then a person is asked, and nobody runs it again blindly.
	Run func(ctx context.Context, in Invocation) (string, error)
	// Asks says that the people of the conversation answer the call, and no function: it has no Run. Its arguments are a question
	// and, if it has them, options.
	Asks bool

	// Preview says what a call would do, in one sentence, before anybody decides. It changes nothing. Nil: the policy's preview, if it has one.
	Preview func(ctx context.Context, in Invocation) (string, error)
	// Definition is what the tool's source said of it, byte for byte; the hash that is pinned is over it. Nil: the fields above are all there is.
	Definition json.RawMessage
	// Claims are what the source says of the tool's nature. Nobody vouches for them: people see them as its words, and no risk is lower for them.
	Claims desk.Claims
	// Presumed is the risk where the policy does not name the tool. Zero: it is unknown there.
	Presumed approvers.Risk

	fits  func(args json.RawMessage) error // of a function with typed arguments: what the schema admits and the type does not is refused as well
	fault error                            // why the types of a function can't be a tool's
}

// Invocation is one run of a tool.
type Invocation struct {
	// Key is the idempotency key: the execution's id, the same whenever this run is tried again. A tool
	// that is declared idempotent acts once for each key.
	Key string
	// Args are the exact bytes that were allowed.
	Args json.RawMessage
	// Conversation and Turn name where the call was asked for; Request is the approval request, empty where nobody was asked.
	Conversation, Turn, Request string
	// Asker is the person who wrote last before the call was asked for.
	Asker approvers.PersonID
	// About tells what Slack knows of the asker, as JSON: name, title, time zone, local time, language.
	About func(ctx context.Context) (string, error)
	// Result is all that an earlier run of the same conversation answered, by the id of its execution.
	Result func(ctx context.Context, run string) (string, error)
	// Progress says how far the run is, for the people in the thread. It does not wait.
	Progress func(Progress)
	// Attach adds a file to the result, within [MaxFile], [MaxFiles] and [MaxFilesSize]; beyond them its error wraps [ErrFile]. People find it in the thread; the model is
	// told its name, type and size.
	Attach func(File) error
	// Ask puts a form to the asker and waits for the answer: ten minutes at most, in which the run's own time does not run on. A run may ask five times. An error, which wraps
	// [ErrForm], says that nobody was asked.
	Ask func(ctx context.Context, f Form) (Reply, error)
}

// Progress is how far a run is.
type Progress struct {
	Done, Total float64 // Total zero: it is not known
	Text        string
}

// File is a part of a result that is no text for the model: an image, a document.
type File struct {
	Name string
	Type string // the media type, such as image/png
	Data []byte
}

// Form is what a tool has to know of the asker in the middle of its run.
type Form struct {
	From   string          // who wants to know, as people should read it
	Text   string          // the question
	Schema json.RawMessage // the JSON Schema of the answer: an object of plain fields. Nil: there is an address instead
	URL    string          // the address that the asker is to visit
}

// Reply is what became of a form.
type Reply struct {
	Action ReplyAction
	Values json.RawMessage // an object that the form's schema admits; only where it was accepted
}

// ReplyAction is what the asker did with a form.
type ReplyAction string

// The answers to a form. Cancelled is also one that nobody answered.
const (
	ReplyAccepted  ReplyAction = "accept"
	ReplyDeclined  ReplyAction = "decline"
	ReplyCancelled ReplyAction = "cancel"
)

// ErrOutcomeUnknown is wrapped by a tool's error when it can't tell whether it acted: an answer that never came, a connection that broke.
var ErrOutcomeUnknown = errors.New("it is not known whether this happened")

// ErrNotRun is wrapped by a tool's error when nothing was begun, because the tool is not what people agreed to any more, or is not there. People read that it was not run, rather than
// that the tool failed.
var ErrNotRun = errors.New("it was not run")

// ErrTool says that a tool can't be registered as it is. The wrapping error names the tool and says what to change.
var ErrTool = errors.New("tool not registered")

const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = time.Hour
	// maxDescription is what the chat-completions API takes, in characters.
	maxDescription = 1024
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// check says what is wrong with the tool's plain fields, or "".
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

// hash pins what the model and the approvers were told of the tool: every byte that changes it changes the hash.
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

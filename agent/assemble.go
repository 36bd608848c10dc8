package agent

import (
	"encoding/json"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
)

// Limits on how much of one answer is stored.
const (
	maxContent = 1 << 20 // bytes of text
	maxThought = 1 << 16 // bytes of reasoning, and bytes that the endpoint added to all calls together
	maxCalls   = 64      // tool calls; further calls of the step are refused
	maxID      = 256     // bytes of a call's id
	maxName    = 256     // bytes of a tool's name
)

// assembly assembles an answer from the chunks of a stream.
type assembly struct {
	text    strings.Builder
	refusal strings.Builder
	thought strings.Builder
	calls   []*partialCall // at most maxCalls, plus one placeholder for all further calls
	last    *partialCall
	byIndex map[int]*partialCall
	dropped int // how many calls came after the placeholder
	finish  openai.FinishReason
	cutText bool // the text was longer than its limit
	tokens  int  // input and output tokens, as the server reported them; zero: the server reported none
	told    told // reported values for traces, without the finish reason: see finish
}

// partialCall is one tool call while its pieces arrive.
type partialCall struct {
	id, name string
	args     strings.Builder
	added    string // the JSON that the endpoint added to the call
	over     bool   // the arguments or the name were longer than the limit
}

// whole reports whether the received arguments are a complete JSON object. Later pieces with arguments then belong to
// another call.
func (c *partialCall) whole() bool {
	text := strings.TrimSpace(c.args.String())
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}

// add adds one choice of a chunk.
func (a *assembly) add(choice choice) {
	write(&a.thought, choice.Delta.Reasoning, maxThought)
	a.cutText = write(&a.text, string(choice.Delta.Content), maxContent) || a.cutText
	a.cutText = write(&a.refusal, choice.Delta.Refusal, maxContent) || a.cutText
	for _, piece := range choice.Delta.ToolCalls {
		a.addCall(piece)
	}
	if f := choice.Delta.FunctionCall; f != nil { // the API's older form: one call without an id
		first := 0
		a.addCall(callPiece{ToolCall: openai.ToolCall{Index: &first, Function: *f}})
	}
	if choice.FinishReason != "" && choice.FinishReason != openai.FinishReasonNull {
		a.finish = choice.FinishReason
	}
}

// begun reports whether a part of the answer has arrived.
func (a *assembly) begun() bool {
	return a.text.Len()+a.refusal.Len()+a.thought.Len()+len(a.calls) > 0
}

// write appends s up to a limit. If a part of s did not fit, write returns true.
func write(to *strings.Builder, s string, limit int) (cut bool) {
	if room := limit - to.Len(); len(s) > room {
		s, cut = strings.ToValidUTF8(s[:max(0, room)], ""), true
	}
	to.WriteString(s)
	return cut
}

// addCall adds one piece of a call. According to the API, each piece has the index of its call. The first piece of a
// call also has the id and the name. Some servers omit indexes, send one index for all calls, repeat ids and names with
// each piece, or invent a new id for each piece. If it is unclear to which call a piece belongs, addCall makes the call
// that gets the piece invalid, because a piece must never complete a wrong call.
func (a *assembly) addCall(piece callPiece) {
	c := a.find(piece)
	if c == nil || another(c, piece) {
		c = &partialCall{}
		if len(a.calls) <= maxCalls {
			a.calls = append(a.calls, c)
		} else {
			a.dropped++ // c is dropped, but later pieces of the call are still written to c
		}
	}
	a.last = c
	if piece.Index != nil {
		if a.byIndex == nil {
			a.byIndex = map[int]*partialCall{}
		}
		a.byIndex[*piece.Index] = c
	}
	if c.id == "" && len(piece.ID) <= maxID {
		c.id = piece.ID
	}
	if name := piece.Function.Name; name != c.name { // the name may come whole, in parts, or repeated with each piece
		c.over = c.over || len(c.name)+len(name) > maxName
		c.name = (c.name + name)[:min(len(c.name)+len(name), maxName)]
	}
	c.over = write(&c.args, piece.Function.Arguments, approvers.MaxArgs) || c.over
	if len(piece.Added) > 0 && string(piece.Added) != "null" {
		c.added = string(piece.Added)
	}
}

// find returns the call that a piece appears to continue, or nil.
func (a *assembly) find(piece callPiece) *partialCall {
	if piece.Index != nil {
		return a.byIndex[*piece.Index]
	}
	for i := len(a.calls) - 1; i >= 0 && piece.ID != ""; i-- {
		if a.calls[i].id == piece.ID {
			return a.calls[i]
		}
	}
	if piece.ID != "" && piece.Function.Name != "" {
		return nil
	}
	return a.last
}

// another reports whether a piece starts a new call. c is the call that find returned for the piece.
func another(c *partialCall, piece callPiece) bool {
	if piece.Function.Name == "" {
		return false // every call begins with its name
	}
	if piece.ID != "" && c.id != "" && piece.ID != c.id {
		return true
	}
	return c.whole() && piece.Function.Arguments != ""
}

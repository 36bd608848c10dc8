package scriptedmodel

import (
	"encoding/json"
	"net/http"
)

// answer is one reply that is being sent to the client.
type answer struct {
	id      string
	created int64
	request Request
	reply   Reply
	way     Fault // the fault with which the answer is sent
}

const fingerprint = "fp_scripted"

type completion struct {
	ID                string   `json:"id"`
	Object            string   `json:"object"`
	Created           int64    `json:"created"`
	Model             string   `json:"model"`
	SystemFingerprint string   `json:"system_fingerprint"`
	Choices           []choice `json:"choices"`
	Usage             usage    `json:"usage"`
}

type choice struct {
	Index        int       `json:"index"`
	Message      wire      `json:"message"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
}

type wire struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []wireCall `json:"tool_calls,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func (a answer) usage() usage {
	prompt, said := a.request.promptTokens(), a.reply.tokens()
	return usage{PromptTokens: prompt, CompletionTokens: said, TotalTokens: prompt + said}
}

// content returns nil if the answer has tool calls and no text, because a real model sends null as the content of such
// an answer.
func (a answer) content() *string {
	if a.reply.Content == "" && len(a.reply.Calls) > 0 {
		return nil
	}
	return &a.reply.Content
}

// The method "whole" sends the answer as one JSON object.
func (a answer) whole(w http.ResponseWriter) {
	message := wire{Role: "assistant", Content: a.content()}
	for _, call := range a.reply.Calls {
		message.ToolCalls = append(message.ToolCalls, wireCall{ID: call.ID, Type: "function", Function: wireFunction{Name: call.Name, Arguments: call.Arguments}})
	}
	body := completion{ID: a.id, Object: "chat.completion", Created: a.created, Model: a.request.Model, SystemFingerprint: fingerprint,
		Choices: []choice{{Message: message, FinishReason: a.reply.Finish}}, Usage: a.usage()}
	if !a.way.Cut {
		writeJSON(w, http.StatusOK, body)
		return
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic("scriptedmodel: an answer that can't be written: " + err.Error()) // answers hold plain values only
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data[:len(data)/2]) // an error does not matter, because the next line breaks the connection
	breakOff(w)
}

// breakOff closes the connection without completing the answer.
func breakOff(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush() // sends the written data before the connection breaks
	panic(http.ErrAbortHandler)
}

package workflow_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// finish ends a run with files.
func (h *harness) finish(execution, result string, files ...workflow.File) {
	h.t.Helper()
	_, ran, err := h.Runs.Claim(h.ctx(), execution)
	if err != nil || !ran {
		h.t.Fatalf("claim: %t, %v", ran, err)
	}
	h.ok(h.Runs.Finish(h.ctx(), execution, true, result, files...))
}

func (h *harness) files(execution string) []store.File {
	h.t.Helper()
	return readStore(h, func(r store.Reader) ([]store.File, error) { return r.Files(execution) })
}

// One transaction stores the end of a run and the run's files. Each file has a record and an outbox message.
func TestFilesComeWithTheEndOfTheRun(t *testing.T) {
	h := newHarness(t)
	call := h.propose(h.say(alice, "please").Turn, `search_orders {"q":"x"}`)[0]
	picture := bytes.Repeat([]byte{0, 0xFF}, 1<<20)
	h.finish(call.Execution, "found", workflow.File{Name: "a.png", Type: "image/png", Data: picture}, workflow.File{Name: "b", Type: "odd type", Data: []byte("b")})
	files := h.files(call.Execution)
	if len(files) != 2 || files[0].Name != "a.png" || files[0].Type != "image/png" || files[0].Size != len(picture) || files[1].Type != "application/octet-stream" || files[1].Index != 1 {
		t.Fatalf("there are %+v", files)
	}
	if facts, body := h.lastFacts(call.Execution, approvers.AuditAttached); facts["file"] != "1" || facts["bytes"] != "1" || !strings.Contains(body, files[1].Hash) || !strings.Contains(body, `"b"`) {
		t.Errorf("the record is %v %s", facts, body)
	}
	var shown []int
	for _, s := range h.messagesOf(call.Execution) {
		if s.Kind == store.OutboxAttachment {
			shown = append(shown, s.Step)
			vm, err := h.Views.Message(h.ctx(), s.ID)
			if err != nil || vm.File.Index != s.Step || s.Step == 0 && !bytes.Equal(vm.Data, picture) || s.To != "conversation:"+call.Conversation || s.Rank != store.RankLast {
				t.Errorf("%+v is %v", s, err)
			}
		}
	}
	if len(shown) != 2 {
		t.Errorf("shown are %v", shown)
	}
	if err := h.Runs.Finish(h.ctx(), call.Execution, true, "again", workflow.File{Name: "c", Data: []byte("c")}); !errors.Is(err, approvers.ErrNotRunning) || len(h.files(call.Execution)) != 2 {
		t.Errorf("a second end: %v", err)
	}
}

// If a result is too long for its card, the whole result is also stored as a file, but only once.
func TestResultThatItsCardCuts(t *testing.T) {
	h := newHarness(t)
	long := `{"text":"` + strings.Repeat("é", workflow.CardResult) + `"}`
	for name, c := range map[string]struct {
		spec, result string
		files        []workflow.File
		want         []string
	}{
		"asked about and long":      {`issue_refund {"amount":1}`, long, nil, []string{"issue_refund-result.json"}},
		"asked about and short":     {`issue_refund {"amount":1}`, "done", nil, nil},
		"kept whole already":        {`issue_refund {"amount":1}`, long, []workflow.File{{Name: "all", Data: []byte("all"), Whole: true}}, []string{"all"}},
		"nobody was asked about it": {`search_orders {"q":"x"}`, long, nil, nil},
		"long, and not valid JSON":  {`issue_refund {"amount":2}`, long[1:], nil, []string{"issue_refund-result.txt"}},
	} {
		call := h.propose(h.say(alice, "please").Turn, c.spec)[0]
		if call.Request != "" {
			h.approve(lead, call.Request)
		}
		h.finish(call.Execution, c.result, c.files...)
		var got []string
		for _, f := range h.files(call.Execution) {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: there are %q, want %q", name, got, c.want)
		}
		h.answer(call.Turn)
	}
}

// In a conversation, the model can read the complete results of the conversation's runs. In another conversation, the
// model can't read these results. After an erasure, nobody can read the results.
func TestWholeResult(t *testing.T) {
	h := newHarness(t)
	call := h.propose(h.say(alice, "please").Turn, `search_orders {"q":"Roswell"}`)[0]
	read := func(conversation, run string) string {
		got, err := h.Views.WholeResult(h.ctx(), conversation, run)
		if errors.Is(err, view.ErrNoResult) {
			return "none"
		}
		h.ok(err)
		return got
	}
	if got := read(call.Conversation, call.Execution); got != "none" {
		t.Errorf("before it ran: %q", got)
	}
	h.finish(call.Execution, "Ros", workflow.File{Name: "Roswell.txt", Data: []byte("Roswell, all of it"), Whole: true}, workflow.File{Name: "Roswell.png", Data: []byte("Roswell")})
	if got := read(call.Conversation, call.Execution); got != "Roswell, all of it" {
		t.Errorf("it reads %q", got)
	}
	if got := read("another", call.Execution) + read(call.Conversation, "exec_none"); got != "nonenone" {
		t.Errorf("elsewhere: %q", got)
	}
	h.answer(call.Turn)
	h.due()
	done, err := retention.Erase(h.ctx(), h.Workflow, call.Execution, approvers.Operator("root"), "asked to")
	h.ok(err)
	if left := h.written(call.Turn); strings.Contains(left, "Roswell") || done.Files != 2 {
		t.Errorf("erased %+v; the store still has\n%s", done, left)
	}
	if got := read(call.Conversation, call.Execution); got != "" {
		t.Errorf("after it was erased: %q", got)
	}
	for _, s := range h.messagesOf(call.Execution) {
		if s.Kind != store.OutboxAttachment {
			continue
		}
		if _, err := h.Views.Message(h.ctx(), s.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a message that shows an erased file: %v", err)
		}
	}
	h.ok(h.store.Check(h.ctx()))
}

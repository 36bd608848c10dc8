package desk_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// finish ends a run with files.
func (o *office) finish(execution, result string, files ...desk.File) {
	o.t.Helper()
	_, ran, err := o.Claim(o.ctx(), execution)
	if err != nil || !ran {
		o.t.Fatalf("claim: %t, %v", ran, err)
	}
	o.ok(o.Finish(o.ctx(), execution, true, result, files...))
}

func (o *office) files(execution string) []store.File {
	o.t.Helper()
	return view(o, func(r store.Reader) ([]store.File, error) { return r.Files(execution) })
}

// Files are there with the end of the run, each with its record and its surface, or not at all.
func TestFilesComeWithTheEndOfTheRun(t *testing.T) {
	o := newOffice(t)
	call := o.propose(o.say(alice, "please").Turn, `search_orders {"q":"x"}`)[0]
	picture := bytes.Repeat([]byte{0, 0xFF}, 1<<20)
	o.finish(call.Execution, "found", desk.File{Name: "a.png", Type: "image/png", Data: picture}, desk.File{Name: "b", Type: "odd type", Data: []byte("b")})
	files := o.files(call.Execution)
	if len(files) != 2 || files[0].Name != "a.png" || files[0].Type != "image/png" || files[0].Size != len(picture) || files[1].Type != "application/octet-stream" || files[1].Index != 1 {
		t.Fatalf("there are %+v", files)
	}
	if facts, body := o.lastFacts(call.Execution, approvers.AuditAttached); facts["file"] != "1" || facts["bytes"] != "1" || !strings.Contains(body, files[1].Hash) || !strings.Contains(body, `"b"`) {
		t.Errorf("the record is %v %s", facts, body)
	}
	var shown []int
	for _, s := range o.surfacesOf(call.Execution) {
		if s.Kind == store.SurfaceAttachment {
			shown = append(shown, s.Step)
			sight, err := o.See(o.ctx(), s.ID)
			if err != nil || sight.File.Index != s.Step || s.Step == 0 && !bytes.Equal(sight.Data, picture) || s.To != "conversation:"+call.Conversation || s.Rank != store.RankLast {
				t.Errorf("%+v is %v", s, err)
			}
		}
	}
	if len(shown) != 2 {
		t.Errorf("shown are %v", shown)
	}
	if err := o.Finish(o.ctx(), call.Execution, true, "again", desk.File{Name: "c", Data: []byte("c")}); !errors.Is(err, approvers.ErrNotRunning) || len(o.files(call.Execution)) != 2 {
		t.Errorf("a second end: %v", err)
	}
}

// A result that its card can't show whole is a file, too, once.
func TestResultThatItsCardCuts(t *testing.T) {
	o := newOffice(t)
	long := `{"text":"` + strings.Repeat("é", desk.CardResult) + `"}`
	for name, c := range map[string]struct {
		spec, result string
		files        []desk.File
		want         []string
	}{
		"asked about and long":       {`issue_refund {"amount":1}`, long, nil, []string{"issue_refund-result.json"}},
		"asked about and short":      {`issue_refund {"amount":1}`, "done", nil, nil},
		"kept whole already":         {`issue_refund {"amount":1}`, long, []desk.File{{Name: "all", Data: []byte("all"), Whole: true}}, []string{"all"}},
		"nobody was asked about it":  {`search_orders {"q":"x"}`, long, nil, nil},
		"long, and in no whole JSON": {`issue_refund {"amount":2}`, long[1:], nil, []string{"issue_refund-result.txt"}},
	} {
		call := o.propose(o.say(alice, "please").Turn, c.spec)[0]
		if call.Request != "" {
			o.approve(lead, call.Request)
		}
		o.finish(call.Execution, c.result, c.files...)
		var got []string
		for _, f := range o.files(call.Execution) {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: there are %q, want %q", name, got, c.want)
		}
		o.answer(call.Turn)
	}
}

// What a conversation's own runs answered can be read there whole, and nowhere else; after it was erased nothing of it can.
func TestWholeResult(t *testing.T) {
	o := newOffice(t)
	call := o.propose(o.say(alice, "please").Turn, `search_orders {"q":"Roswell"}`)[0]
	read := func(conversation, run string) string {
		got, err := o.WholeResult(o.ctx(), conversation, run)
		if errors.Is(err, desk.ErrNoResult) {
			return "none"
		}
		o.ok(err)
		return got
	}
	if got := read(call.Conversation, call.Execution); got != "none" {
		t.Errorf("before it ran: %q", got)
	}
	o.finish(call.Execution, "Ros", desk.File{Name: "Roswell.txt", Data: []byte("Roswell, all of it"), Whole: true}, desk.File{Name: "Roswell.png", Data: []byte("Roswell")})
	if got := read(call.Conversation, call.Execution); got != "Roswell, all of it" {
		t.Errorf("it reads %q", got)
	}
	if got := read("another", call.Execution) + read(call.Conversation, "exec_none"); got != "nonenone" {
		t.Errorf("elsewhere: %q", got)
	}
	o.answer(call.Turn)
	o.due()
	done, err := o.Erase(o.ctx(), call.Execution, approvers.Operator("root"), "asked to")
	o.ok(err)
	if left := o.written(call.Turn); strings.Contains(left, "Roswell") || done.Files != 2 {
		t.Errorf("erased %+v; the store still has\n%s", done, left)
	}
	if got := read(call.Conversation, call.Execution); got != "" {
		t.Errorf("after it was erased: %q", got)
	}
	for _, s := range o.surfacesOf(call.Execution) {
		if s.Kind != store.SurfaceAttachment {
			continue
		}
		if _, err := o.See(o.ctx(), s.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("what shows an erased file: %v", err)
		}
	}
	o.ok(o.store.Check(o.ctx()))
}

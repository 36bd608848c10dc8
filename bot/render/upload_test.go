package render

import (
	"strings"
	"testing"

	"countersign/bot/bottest"
	"countersign/bot/render/thread"
	"countersign/store"
)

func TestAttachmentThatSlackTakesNot(t *testing.T) {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message = store.OutboxMessage{ID: "s_0123456789abcdef", Kind: store.OutboxAttachment, Ref: "exec_1", To: "conversation:conv_1"}
	s.File = &store.File{Execution: "exec_1", Name: "<!channel> *invoice*.pdf.exe\u202e", Type: "application/pdf", Size: 3 << 20}
	s.Execution.Tool = "crm.export"
	bottest.Golden(t, "attachment_refused", drawn(t, s).Messages[0])
	if u := thread.UploadOf(s); u.Name != "456789abcdef-__channel___invoice_.pdf.exe_" || strings.Contains(u.Title, "\u202e") || strings.ContainsAny(u.Comment, "<>") {
		t.Errorf("it is uploaded as %+v", u)
	}
	s.File.Whole, s.File.Name, s.File.Type = true, "crm.export-result.json", "text/plain"
	s.Call.Args, s.Call.Secrets, s.Data = `{"token":"hunter2-hunter2"}`, []string{"token"}, []byte(`{"you said":"hunter2-hunter2"}`)
	bottest.Golden(t, "attachment_whole_refused", drawn(t, s).Messages[0])
	if u := thread.UploadOf(s); strings.Contains(string(u.Data), "hunter2") || u.Name != "456789abcdef-crm.export-result.json" {
		t.Errorf("a masked argument is in the file, or its name is odd: %q %s", u.Name, u.Data)
	}
}

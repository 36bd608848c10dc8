package bot

import (
	"strings"
	"testing"

	"countersign/store"
)

func TestAttachmentThatSlackTakesNot(t *testing.T) {
	s := sightOf(testRequest(refundArgs))
	s.Surface = store.Surface{ID: "s_0123456789abcdef", Kind: store.SurfaceAttachment, Ref: "exec_1", To: "conversation:conv_1"}
	s.File = &store.File{Execution: "exec_1", Name: "<!channel> *invoice*.pdf.exe\u202e", Type: "application/pdf", Size: 3 << 20}
	s.Execution.Tool = "crm.export"
	golden(t, "attachment_refused", drawn(t, s).messages[0])
	if u := uploadOf(s); u.name != "456789abcdef-__channel___invoice_.pdf.exe_" || strings.Contains(u.title, "\u202e") || strings.ContainsAny(u.comment, "<>") {
		t.Errorf("it is uploaded as %+v", u)
	}
	s.File.Whole, s.File.Name, s.File.Type = true, "crm.export-result.json", "text/plain"
	s.Call.Args, s.Call.Secrets, s.Data = `{"token":"hunter2-hunter2"}`, []string{"token"}, []byte(`{"you said":"hunter2-hunter2"}`)
	golden(t, "attachment_whole_refused", drawn(t, s).messages[0])
	if u := uploadOf(s); strings.Contains(string(u.data), "hunter2") || u.name != "456789abcdef-crm.export-result.json" {
		t.Errorf("a masked argument is in the file, or its name is odd: %q %s", u.name, u.data)
	}
}

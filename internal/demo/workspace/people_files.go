package workspace

import (
	"encoding/base64"

	"countersign/internal/demo/workspace/wire"
)

// attach adds the files of a person's message: {"files": [{"name", "content"}]} with the content as text, or {"name",
// "base64"}.
func (s *Server) attach(p *personCall, m *message) *apiError {
	if !p.has("files") {
		return nil
	}
	raw, _ := p.nested("files")
	list, ok := raw.([]any)
	if !ok {
		return refuse("invalid_files", "files is a list")
	}
	var files []*file
	for _, item := range list {
		given, _ := item.(object)
		name, _ := given["name"].(string)
		content, _ := given["content"].(string)
		data := []byte(content)
		if encoded, is := given["base64"].(string); is {
			decoded, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				return refuse("invalid_files", "base64 can't be decoded")
			}
			data = decoded
		}
		if name == "" {
			return refuse("invalid_files", "a file has a name")
		}
		files = append(files, &file{
			ID: wire.NewID("F"), Name: name, Title: name, Length: len(data), Type: fileType(name), Data: data, Created: s.cfg.Now().Unix(), Shared: true, User: m.User,
		})
	}
	for _, f := range files {
		s.files[f.ID] = f
		m.Files = append(m.Files, s.fileJSON(f, s.base(p.r)))
	}
	if len(files) > 0 {
		m.Subtype = "file_share"
	}
	return nil
}

// tellOfFiles sends the additional events that Slack sends for a message with files.
func (s *Server) tellOfFiles(ch *channel, m *message) {
	for _, f := range m.Files {
		s.emit("file_shared", object{"type": "file_shared", "file_id": f["id"], "user_id": m.User, "file": object{"id": f["id"]}, "channel_id": ch.ID})
	}
}

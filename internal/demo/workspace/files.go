package workspace

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// file is an uploaded file.
type file struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Title   string `json:"title"`
	Type    string `json:"type"`
	Length  int    `json:"length"`
	Data    []byte `json:"data"`
	Created int64  `json:"created"`
	Shared  bool   `json:"shared"`
	User    string `json:"user"`

	upload string // the name in the upload URL until the upload is complete
	sent   bool
}

// files holds the files, receives uploads, and serves the files.
type files struct {
	*core
	channels *channels
	contents *contentReader
	messages *messages
	byID     map[string]*file
}

// maxUpload limits the size of a file. Slack accepts 1 GB. The workspace accepts less than Slack, because it keeps
// files in memory.
const maxUpload = 32 << 20

// getUploadURL is files.getUploadURLExternal.
func (fs *files) getUploadURL(c *call) (object, *apiError) {
	name, length := path.Base(c.text("filename")), c.number("length", 0)
	if c.text("filename") == "" || length <= 0 {
		return nil, refuse("invalid_arguments", "filename and length are required")
	}
	if length > maxUpload {
		return nil, refuse("file_upload_size_restricted")
	}
	f := &file{ID: wire.NewID("F"), Name: name, Title: name, Length: length, Type: fileType(name), Created: fs.cfg.Now().Unix(), User: fs.botUser.ID, upload: wire.NewSecret()}
	fs.byID[f.ID] = f
	return object{"upload_url": c.base + "/upload/" + f.upload, "file_id": f.ID}, nil
}

func fileType(name string) string {
	ext := strings.TrimPrefix(strings.ToLower(path.Ext(name)), ".")
	if ext == "" || ext == "txt" {
		return "text"
	}
	return ext
}

// serveUpload receives the content of a file, in a multipart form or as the body.
func (fs *files) serveUpload(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost && r.Method != http.MethodPut {
		http.Error(w, "send the file with POST or PUT", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload+64<<10)
	data, err := uploaded(r)
	if err != nil {
		http.Error(w, "the upload could not be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.byID {
		if f.upload == "" || f.upload != r.PathValue("id") {
			continue
		}
		if len(data) != f.Length {
			http.Error(w, "the length of the file differs from the one given to files.getUploadURLExternal", http.StatusBadRequest)
			return
		}
		f.Data, f.sent = data, true
		fmt.Fprint(w, "OK - "+f.Name)
		return
	}
	http.Error(w, "there is no such upload", http.StatusNotFound)
}

func uploaded(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return io.ReadAll(r.Body)
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is no file in the form")
		}
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			return io.ReadAll(part)
		}
	}
}

// completeUpload is files.completeUploadExternal. completeUpload makes the files visible, and posts them if the call
// names channels.
func (fs *files) completeUpload(c *call) (object, *apiError) {
	raw, _ := c.nested("files")
	list, ok := raw.([]any)
	if !ok || len(list) == 0 {
		return nil, refuse("invalid_arguments", "missing required field: files [json-pointer:/files]")
	}
	var done []*file
	for _, item := range list {
		summary, _ := item.(object)
		id, _ := summary["id"].(string)
		f := fs.byID[id]
		switch {
		case f == nil:
			return nil, refuse("file_not_found")
		case !f.sent:
			return nil, refuse("file_update_failed")
		}
		if title, _ := summary["title"].(string); title != "" {
			f.Title = title
		}
		done = append(done, f)
	}
	targets := c.words("channels")
	if id := c.text("channel_id"); id != "" {
		targets = append(targets, id)
	}
	what, failed := fs.contents.read(arguments{values: object{"text": c.text("initial_comment"), "blocks": c.values["blocks"]}}, maxPostText, true)
	if failed != nil {
		return nil, failed
	}
	var channels []*channel
	for _, id := range targets {
		ch := fs.channels.byID[id]
		if failed := fs.channels.mayPost(ch); failed != nil {
			return nil, failed
		}
		channels = append(channels, ch)
	}
	out := make([]object, len(done))
	for i, f := range done {
		f.upload, f.Shared = "", len(channels) > 0
		out[i] = fs.json(f, c.base)
	}
	for _, ch := range channels {
		m := fs.messages.botMessage(what)
		m.Files = out
		if failed := fs.messages.placeInThread(ch, m, c.text("thread_ts"), false); failed != nil {
			return nil, failed
		}
		fs.messages.publish(ch, m)
	}
	return object{"files": out}, nil
}

func (fs *files) json(f *file, base string) object {
	link := base + "/files/" + f.ID + "/" + url.PathEscape(f.Name)
	return object{
		"id": f.ID, "created": f.Created, "timestamp": f.Created, "name": f.Name, "title": f.Title, "mimetype": mimeType(f.Name),
		"filetype": f.Type, "pretty_type": strings.ToUpper(f.Type), "user": f.User, "user_team": fs.team.ID, "editable": false,
		"size": f.Length, "mode": "hosted", "is_external": false, "external_type": "", "is_public": f.Shared, "public_url_shared": false,
		"display_as_bot": false, "username": "", "channels": []string{}, "groups": []string{}, "ims": []string{},
		"url_private": link, "url_private_download": link, "permalink": link, "file_access": "visible", "has_rich_preview": false,
	}
}

// mimeType returns the content type under which a file is served. The content type never makes a browser run the file.
func mimeType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".pdf":
		return "application/pdf"
	case ".json", ".csv", ".txt", ".md", ".log", ".yaml", ".yml":
		return "text/plain"
	}
	return "application/octet-stream"
}

// info is files.info.
func (fs *files) info(c *call) (object, *apiError) {
	f := fs.byID[c.text("file")]
	if f == nil || f.upload != "" {
		return nil, refuse("file_not_found")
	}
	return object{"file": fs.json(f, c.base), "comments": []object{}, "paging": object{"count": 0, "total": 0, "page": 1, "pages": 0}}, nil
}

// serveFile serves a file's url_private. The id is unguessable and the workspace serves only this machine, so no
// further protection is needed.
func (fs *files) serveFile(w http.ResponseWriter, r *http.Request) {
	fs.mu.Lock()
	f, ready := fs.byID[r.PathValue("id")], false
	if f != nil {
		ready = f.upload == "" // a complete file doesn't change any more
	}
	fs.mu.Unlock()
	if !ready {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mimeType(f.Name))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	w.Write(f.Data)
}

// attach adds the files of a person's message. "files" is a list of {"name", "content"} with text, or {"name",
// "base64"}.
func (fs *files) attach(p *personCall, m *message) *apiError {
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
			ID: wire.NewID("F"), Name: name, Title: name, Length: len(data), Type: fileType(name), Data: data, Created: fs.cfg.Now().Unix(), Shared: true, User: m.User,
		})
	}
	for _, f := range files {
		fs.byID[f.ID] = f
		m.Files = append(m.Files, fs.json(f, fs.base(p.r)))
	}
	if len(files) > 0 {
		m.Subtype = "file_share"
	}
	return nil
}

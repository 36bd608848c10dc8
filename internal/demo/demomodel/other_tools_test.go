package demomodel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/demo/demomodel"
)

var files = []demomodel.Tool{
	{Name: "files_write_file", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"mode":{"type":"integer"},"keep":{"type":"boolean"}},"required":["path","content"]}`)},
	{Name: "files_read_file", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	{Name: "notes_read_file", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	{Name: "files_list_allowed_directories", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
	{Name: "ask_people"},
}

// A tool without rules is called when a person writes out the call. The test uses several spellings of the name and the
// arguments.
func TestCallsWrittenOut(t *testing.T) {
	for said, want := range map[string]string{
		`call files.write_file {"path":"hello.txt","content":"Hello"}`:         `files_write_file{"path":"hello.txt","content":"Hello"}`,
		`call files_write_file path=hello.txt content="Hello, you"`:            `files_write_file{"path":"hello.txt","content":"Hello, you"}`,
		`please use write_file with path: hello.txt, and content: “Hello you”`: `files_write_file{"path":"hello.txt","content":"Hello you"}`,
		`run files.write_file path=a content='b c' mode=420 keep=true`:         `files_write_file{"path":"a","content":"b c","mode":420,"keep":true}`,
		`run files.write_file path=7 content=true mode=many`:                   `files_write_file{"path":"7","content":"true","mode":"many"}`,
		`call files.list_allowed_directories`:                                  `files_list_allowed_directories{}`,
		`call notes.read_file path=/tmp/a.txt`:                                 `notes_read_file{"path":"/tmp/a.txt"}`,
		`call read_file path=a`:                                                "No tool named read_file is offered to me here. I know no rules for",
		`call files.write_file`:                                                `“call files_write_file path=… content=…”`,
		`call files.write_file path=a b c`:                                     `“call files_write_file path=… content=…”`,
		`call files.write_file path=a"b`:                                       `files_write_file{"path":"a\"b"}`,
		`call rockets.launch {}`:                                               "No tool named rockets.launch is offered to me here.",
		`what tools do you have?`:                                              "I know no rules for files_list_allowed_directories, files_read_file, files_write_file, notes_read_file, but call them when you write it out: “call files_list_allowed_directories”.",
		`blorp the frobnicator`:                                                "but call them when you write it out",
	} {
		got := demomodel.Reply([]demomodel.Message{{Role: "user", Content: said}}, files)
		text := got.Text
		for _, c := range got.Calls {
			text += c.Name + c.Arguments
		}
		if !strings.Contains(text, want) || (len(got.Calls) > 0) != strings.Contains(want, "{\"") && !strings.HasSuffix(want, "{}") {
			t.Errorf("%s\nis answered with %s\nwant %s", said, text, want)
		}
	}
}

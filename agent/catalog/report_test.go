package catalog

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/agent/pins"
	"countersign/config"
)

// A report contains the tools of servers that answer, the pinned tools of unreachable servers, and the definitions
// that can't become tools. If the lock file has changed since it was read, Write does not replace the file.
func TestReport(t *testing.T) {
	t.Parallel()
	up := openServer(t, "send", "look")
	dir := t.TempDir()
	path := filepath.Join(dir, "countersign.yaml")
	write(t, filepath.Join(dir, "api.yaml"), "openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: https://api.example.com}]\npaths:\n"+
		"  /b: {post: {operationId: b, requestBody: {content: {multipart/form-data: {}}}, responses: {'200': {description: ok}}}}\n")
	write(t, path, basePolicy+"openapi:\n  it: {file: api.yaml}\n"+up.servers("crm", ", effects: {none: read-only}")+"  lost: {command: [no-such-program-anywhere]}\n")
	var lock pins.Lock
	for tool, source := range map[string]string{"crm.gone": "crm", "lost.tool": "lost", "it.gone": "openapi.it", "old.tool": "old", "older.tool": "openapi.older"} {
		_, bare, _ := strings.Cut(tool, ".")
		p, err := pins.Make(tool, source, []byte(`{"name":"`+bare+`","inputSchema":{"type":"object"}}`), "anna", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		lock = lock.With(p)
	}
	if err := lock.Write(pins.Beside(path)); err != nil {
		t.Fatal(err)
	}
	file, err := config.ReadPolicy(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Examine(t.Context(), file, path, "test")
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, s := range r.From("crm") {
		states = append(states, s.Tool.Name+" "+string(s.State))
	}
	if want := []string{"crm.gone gone", "crm.look new", "crm.send new"}; !slices.Equal(states, want) {
		t.Errorf("the tools of the server are %q, want %q", states, want)
	}
	if s := r.From("lost"); len(s) != 1 || s[0].State != pins.Waiting || r.Down["lost"] == "" || len(r.Down) != 1 {
		t.Errorf("the server that is down has %+v; unreachable are %v", s, r.Down)
	}
	if l := r.LeftOutOf("crm"); len(l) != 1 || !strings.Contains(l[0].Reason, `effects names "none"`) {
		t.Errorf("of the server, these are left out: %v", l)
	}
	if l := r.LeftOutOf("it"); len(l) != 1 || NameInPolicy(l[0].Source) != "it" || !strings.Contains(l[0].Reason, "POST /b (b) was left out") {
		t.Errorf("of the OpenAPI file, these are left out: %v", l)
	}
	if names := r.Obsolete(r.From("crm")); !slices.Equal(names, []string{"crm.gone", "old.tool", "older.tool"}) {
		t.Errorf("obsolete are %v", names)
	}
	if err := r.Write(lock.Without("old.tool")); err != nil {
		t.Fatal(err)
	}
	if err := r.Write(lock); !errors.Is(err, ErrLockChanged) {
		t.Errorf("a lock file that changed since it was read is replaced: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Examine(ctx, file, path, "test"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %v", err)
	}
}

func TestPolicyBeforeTheFirst(t *testing.T) {
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Policy(); p != nil {
		t.Errorf("before a policy is adopted, %+v is in force", p)
	}
}

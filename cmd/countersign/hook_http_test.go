package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"countersign/internal/demo/workspaceclient"
)

// remoteCoder is a machine on which Claude Code sends its events to the gateway over HTTP.
type remoteCoder struct {
	caller
	query string // the query of the hook's URL
}

// The method "begins" sends an event, and returns a function that waits for the answer.
func (c remoteCoder) begins(input string) func() string {
	c.Helper()
	type result struct {
		reply gatewayReply
		err   error
	}
	done := make(chan result, 1)
	go func() {
		r, err := c.send(http.MethodPost, "/v1/hooks/claude-code"+c.query, input)
		done <- result{r, err}
	}()
	return func() string {
		c.Helper()
		r := <-done
		if r.err != nil {
			c.Fatal(r.err)
		}
		if r.reply.Status != http.StatusOK || r.reply.Header.Get("Content-Type") != "application/json" {
			c.Fatalf("%d %v %s", r.reply.Status, r.reply.Header, r.reply.Original)
		}
		return r.reply.Original
	}
}

func (c remoteCoder) sends(input string) string {
	c.Helper()
	return c.begins(input)()
}

// hangsUp sends an event, calls the function after, and then closes the connection.
func (c remoteCoder) hangsUp(input string, after func()) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/hooks/claude-code"+c.query, strings.NewReader(input))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	done := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		done <- err
	}()
	after()
	cancel()
	if err := <-done; err == nil {
		c.Fatal("the gateway answered an event although the agent had hung up")
	}
}

func allowed(out string) bool { return strings.Contains(out, `"permissionDecision":"allow"`) }
func denied(out string) bool  { return strings.Contains(out, `"permissionDecision":"deny"`) }

// openRemoteCoder starts a bot whose gateway answers the hooks of two laptops: see hooksPolicy.
func openRemoteCoder(t *testing.T) (p *processHarness, bot *program, admin string, laptop remoteCoder) {
	t.Helper()
	p, bot, admin, gate := openHooks(t)
	return p, bot, admin, remoteCoder{openCaller(t, gate, "cs_laptop"), "?timeout=3600"}
}

// Claude Code's calls wait for real clicks without a program on its machine. Calls are approved and rejected. The
// events after the calls close the cards. Calls of low risk need no click.
func TestHooksOverHTTP(t *testing.T) {
	t.Parallel()
	p, _, _, laptop := openRemoteCoder(t)
	teo := p.watcher("teo")

	answer := laptop.begins(bashCall("PreToolUse", "t1", "make deploy", ""))
	card := teo.sees("countersign", "", "make deploy", "/home/sam/shop", "Sam's laptop", "runs this itself")
	if !strings.Contains(card.Text+string(card.Blocks), "Modify…") {
		t.Error("the card offers no edit, although the agent takes edits back")
	}
	teo.clicks("countersign", "", "Approve", "make deploy")
	if out := answer(); !allowed(out) || !strings.Contains(out, "Approved by Team Lead") {
		t.Errorf("approved: %s", out)
	}
	output := `,"tool_response":{"stdout":"` + strings.Repeat("x", 1<<20) + `"}` // above the limit of the other endpoints
	moved := strings.Replace(bashCall("PostToolUse", "t1", "make deploy", output), "/home/sam/shop", "/home/sam/shop/build", 1)
	if out := laptop.sends(moved); out != "{}\n" {
		t.Errorf("the report: %s", out)
	}
	teo.sees("countersign", "", "make deploy", "The client laptop says", "it ran")

	answer = laptop.begins(bashCall("PreToolUse", "t2", "rm -rf /", ""))
	teo.clicks("countersign", "", "Reject…", "rm -rf /")
	teo.fills("reason", "never")
	if out := answer(); !denied(out) || !strings.Contains(out, "Team Lead rejected this call: never") {
		t.Errorf("rejected: %s", out)
	}
	if out := laptop.sends(bashCall("PreToolUse", "t3", "rm -rf /", "")); !denied(out) || !strings.Contains(out, "never") {
		t.Errorf("the repeat of a rejected call: %s", out)
	}
	low := `{"session_id":"s-1","cwd":"/home/sam/shop","hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"/home/sam/shop/a.go"},"tool_use_id":"t4"}`
	if out := laptop.sends(low); out != "{}\n" {
		t.Errorf("low risk: %s", out)
	}

	answersQuestion(t, teo, laptop.begins)

	phone := laptop
	phone.token, phone.query = "cs_phone", "?profile=comfort"
	edit := func(event, was, more string) string {
		return fmt.Sprintf(`{"session_id":"s-2","cwd":"/home/teo/shop","hook_event_name":%q,"tool_name":"Edit","tool_input":{"file_path":"/home/teo/shop/a.go","old_string":%q,"new_string":"x := 2"}%s}`, event, was, more)
	}
	answer = phone.begins(edit("PermissionRequest", "x := 1", ""))
	teo.clicks("countersign", "", "Approve", "x := 1 → x := 2")
	if out := answer(); !strings.Contains(out, `"behavior":"allow"`) {
		t.Errorf("approved on the phone: %s", out)
	}
	if out := phone.sends(edit("PostToolUse", "x := 1", `,"tool_use_id":"t5"`)); out != "{}\n" {
		t.Errorf("the report: %s", out)
	}
	teo.sees("countersign", "", "x := 1 → x := 2", "it ran")

	// If the agent hangs up, the request is not withdrawn. A later event of the agent shows that the person has
	// answered in the agent's dialog: the call ran, or the turn ended.
	for was, event := range map[string]string{"x := 3": "PostToolUse", "x := 4": "Stop"} {
		phone.hangsUp(edit("PermissionRequest", was, ""), func() { teo.sees("countersign", "", was+" → x := 2", "Approve") })
		teo.sees("countersign", "", was+" → x := 2", "Approve")
		if out := phone.sends(edit(event, was, `,"tool_use_id":"t6"`)); out != "{}\n" {
			t.Errorf("%s: %s", event, out)
		}
		teo.sees("countersign", "", was+" → x := 2", "Withdrawn", "It was answered at the agent")
	}
}

// requestIn finds the id of a request in an answer.
var requestIn = regexp.MustCompile(`req_[0-9A-Za-z]+`)

// A held call ends at the deadline with a denial that names the request. The call also ends if the bot stops or is
// killed, or if the agent hangs up. Each time, the repeated call waits for the same request.
func TestHeldHooksContinue(t *testing.T) {
	t.Parallel()
	p, bot, admin, laptop := openRemoteCoder(t)
	teo := p.watcher("teo")
	call := func(id string) string { return bashCall("PreToolUse", id, "make deploy", "") }

	laptop.query = "?timeout=2"
	out := laptop.sends(call("a"))
	id := requestIn.FindString(out)
	if !denied(out) || id == "" || !strings.Contains(out, "still waits for Team Lead") {
		t.Fatalf("at the deadline: %s", out)
	}
	same := func(when, out string) {
		t.Helper()
		if !denied(out) || requestIn.FindString(out) != id {
			t.Errorf("%s: %s, want the request %s", when, out, id)
		}
	}
	same("the repeat", laptop.sends(call("b")))
	foreign := requestIn.FindString(laptop.sends(strings.Replace(call("c"), "s-1", "s-9", 1)))
	if foreign == id || foreign == "" {
		t.Errorf("another session gets the request %q", foreign)
	}
	same("after another session made the same call", laptop.sends(call("d")))
	laptop.wants(laptop.do(http.MethodPost, "/v1/requests/"+foreign+"/withdraw", ""), http.StatusOK, "withdrawn")

	laptop.query = "?timeout=3600"
	held := func(n int) { teo.readsMetric(admin, fmt.Sprintf("countersign_gateway_waiting %d\n", n)) }
	laptop.hangsUp(call("e"), func() { held(1) })
	held(0)
	laptop.query = "?timeout=2"
	same("after the agent hung up", laptop.sends(call("f")))

	laptop.query = "?timeout=3600"
	answer := laptop.begins(call("g"))
	held(1)
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Errorf("the bot: %v", err)
	}
	same("when the bot stops", answer())
	bot, admin = p.serve()
	laptop.base = "http://" + bot.says(`countersign is up.* gateway=(\S+)`)
	laptop.hangsUp(call("h"), func() {
		held(1)
		_ = bot.end(syscall.SIGKILL)
	})
	bot, admin = p.serve()
	laptop.base = "http://" + bot.says(`countersign is up.* gateway=(\S+)`)
	answer = laptop.begins(call("i"))
	held(1)
	teo.readsMetric(admin, "countersign_requests_waiting 1\n")
	teo.wait("one card with buttons", func(ctx context.Context) (bool, error) {
		messages, err := teo.Messages(ctx, "countersign", "")
		n := 0
		for _, m := range messages {
			if _, ok := workspaceclient.Button(m.Blocks, "Approve"); ok {
				n++
			}
		}
		return n == 1, err
	})
	teo.clicks("countersign", "", "Approve", "make deploy")
	if out := answer(); !allowed(out) || requestIn.FindString(out) != id {
		t.Errorf("approved after the restarts: %s", out)
	}
	if out := laptop.sends(bashCall("PostToolUse", "i", "make deploy", "")); out != "{}\n" {
		t.Errorf("the report: %s", out)
	}
	if r := laptop.do(http.MethodGet, "/v1/requests/"+id, ""); r.text("status") != "succeeded" {
		t.Errorf("the request is %s", r.Original)
	}
}

// readsMetric waits until the bot's metrics have a line.
func (w watcher) readsMetric(admin, line string) {
	w.Helper()
	w.wait("the metric "+line, func(context.Context) (bool, error) {
		status, text := get(w.T, admin+"/metrics")
		return status == http.StatusOK && strings.Contains(text, line), nil
	})
}

// A real bot refuses calls that it can't handle, and keeps the requests of its clients separate. Package hookserver
// tests more of the events that are refused.
func TestHooksOverHTTPRefuse(t *testing.T) {
	t.Parallel()
	p, _, admin, laptop := openRemoteCoder(t)
	teo := p.watcher("teo")
	laptop.query = "?timeout=2&event=PreToolUse"
	call := bashCall("PreToolUse", "a", "make deploy", "")
	own := requestIn.FindString(laptop.sends(call))
	if own == "" {
		t.Fatal("the client's own call has no request")
	}
	for _, attack := range []struct{ name, token, query, body, words string }{
		{"a wrong token", "cs_wrong", "", call, "token"},
		{"two events", "cs_laptop", "", call + call, "JSON"},
		{"long arguments", "cs_laptop", "", bashCall("PreToolUse", "b", strings.Repeat("x", 100<<10), ""), "more than 65536"},
		{"longer arguments", "cs_laptop", "", bashCall("PreToolUse", "c", strings.Repeat("x", 1<<20), ""), "too_large"},
	} {
		c := laptop
		c.token, c.query = attack.token, attack.query
		out := c.sends(attack.body)
		if strings.Contains(out, "allow") || !denied(out) || !strings.Contains(out, attack.words) {
			t.Errorf("%s: %s", attack.name, out)
		}
	}

	// Another client can't use or end the request, although it sends the same session and call.
	thief := laptop
	thief.token = "cs_phone"
	if out := thief.sends(call); !denied(out) || strings.Contains(out, own) {
		t.Errorf("another client gets %s", out)
	}
	for _, event := range []string{"PostToolUse", "Stop"} {
		for _, query := range []string{"", "?profile=comfort"} {
			thief.query = query
			thief.sends(bashCall(event, "a", "make deploy", ""))
		}
	}
	if r := laptop.do(http.MethodGet, "/v1/requests/"+own, ""); r.text("status") != "pending" {
		t.Errorf("the request is %s", r.Original)
	}

	// 16 identical calls at the same time: each approval allows one of them.
	laptop.query = "?timeout=3600"
	laptop.wants(laptop.do(http.MethodPost, "/v1/requests/"+own+"/withdraw", ""), http.StatusOK, "withdrawn")
	answers := make(chan string, 16)
	for i := range cap(answers) {
		go func() {
			r, err := laptop.send(http.MethodPost, "/v1/hooks/claude-code"+laptop.query, bashCall("PreToolUse", fmt.Sprint("same-", i), "make test", ""))
			if err == nil { // at the end of the test, the connections break
				answers <- r.Original
			}
		}()
	}
	teo.readsMetric(admin, "countersign_gateway_waiting 16\n")
	teo.clicks("countersign", "", "Approve", "make test")
	if out := <-answers; !allowed(out) {
		t.Errorf("approved: %s", out)
	}
	teo.readsMetric(admin, "countersign_gateway_waiting 15\n")
	if len(answers) != 0 {
		t.Errorf("one approval let %d more calls run", len(answers))
	}

	for _, wrong := range []string{"/v1/hooks/codex", "/v1/hooks/vim", "/v1/hooks/"} {
		if r := laptop.do(http.MethodPost, wrong, call); r.Status != http.StatusNotFound {
			t.Errorf("%s: %d", wrong, r.Status)
		}
	}
}

package bot

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/bot/transport"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
	"countersign/store"
)

// sending is an HTTP request to the bot. It is signed with the secret and for the time at, unless its headers replace
// the signature.
type sending struct {
	method, path, kind string
	body               string
	secret             string
	at                 time.Time
	headers            http.Header
}

// signedBy returns a signature in Slack's format.
func signedBy(secret, at, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", at, body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// request builds the HTTP request.
func (s sending) request(address string) (*http.Request, error) {
	r, err := http.NewRequest(s.method, address+s.path, strings.NewReader(s.body))
	if err != nil {
		return nil, err
	}
	at := strconv.FormatInt(s.at.Unix(), 10)
	r.Header.Set("Content-Type", s.kind)
	r.Header.Set("X-Slack-Request-Timestamp", at)
	r.Header.Set("X-Slack-Signature", signedBy(s.secret, at, s.body))
	maps.Copy(r.Header, s.headers)
	return r, nil
}

// sends sends a request to the bot, and returns the status and body of the response.
func (h *harness) sends(s sending) (int, string) {
	h.t.Helper()
	r, err := s.request(h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Error(err)
	}
	return resp.StatusCode, string(text)
}

func overHTTP(h *harness) { h.overHTTP = true }

// asEvent, asClick and asCommand return requests as Slack would send them now.
func asEvent(body string) sending {
	return sending{method: http.MethodPost, path: transport.EventsPath, kind: "application/json", body: body, secret: workspace.DemoSigningSecret, at: time.Now()}
}

func asClick(payload string) sending {
	s := asEvent(url.Values{"payload": {payload}}.Encode())
	s.path, s.kind = transport.InteractionsPath, "application/x-www-form-urlencoded"
	return s
}

func asCommand(text string) sending {
	s := asClick("")
	s.path = transport.CommandsPath
	s.body = url.Values{
		"command": {SlashCommand}, "text": {text}, "user_id": {"U0001"}, "channel_id": {"C0001"}, "team_id": {"T0001"}, "api_app_id": {"A0001"},
		"trigger_id": {"1.2.3"}, "response_url": {"http://127.0.0.1:1/"},
	}.Encode()
	return s
}

// approval returns Teo's click on Approve on the card in #support-approvals, in Slack's format. The function change
// edits the payload of the click.
func (h *harness) approval(card posted, trigger string, change func(map[string]any)) sending {
	h.t.Helper()
	payload := map[string]any{
		"type": "block_actions", "trigger_id": trigger, "api_app_id": "A0001", "team": map[string]any{"id": "T0001"}, "user": map[string]any{"id": "U0002"},
		"container": map[string]any{"channel_id": "C0002", "message_ts": card.TS},
		"actions":   []any{map[string]any{"action_id": control.ActApprove, "value": h.buttonOn("C0002", card, control.ActApprove).String()}},
	}
	if change != nil {
		change(payload)
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		h.t.Fatal(err)
	}
	return asClick(string(raw))
}

// Only valid, current requests of Slack are accepted. The bot refuses any other request with a status from
// docs/transports.md, and with a text that reveals nothing. A signed request that is not for the bot is accepted and
// has no effect. Neither kind of request decides a call or posts a message.
func TestUnsignedRequests(t *testing.T) {
	t.Parallel()
	h := newHarness(t, overHTTP)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	request := h.buttonOn("C0002", card, control.ActApprove).Ref
	good := h.approval(card, "1.1.1", nil)
	n := 0
	fresh := func(change func(map[string]any)) sending { // each request differs from all others
		n++
		return h.approval(card, fmt.Sprint("7.7.", n), change)
	}
	with := func(change func(*sending)) sending {
		s := fresh(nil)
		change(&s)
		return s
	}
	header := func(name string, values ...string) sending {
		return with(func(s *sending) { s.headers = http.Header{name: values} })
	}
	payload, err := url.ParseQuery(good.body)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		sent   sending
		status int
	}{
		"no signature":           {header("X-Slack-Signature"), 401},
		"no time":                {header("X-Slack-Request-Timestamp"), 401},
		"an empty signature":     {header("X-Slack-Signature", ""), 401},
		"another secret":         {with(func(s *sending) { s.secret = "00000000000000000000000000000000" }), 401},
		"no secret":              {with(func(s *sending) { s.secret = "" }), 401},
		"a cut signature":        {header("X-Slack-Signature", "v0=abcdef"), 401},
		"no hexadecimal":         {header("X-Slack-Signature", "v0="+strings.Repeat("x", 64)), 401},
		"another version":        {header("X-Slack-Signature", "v1="+strings.Repeat("0", 64)), 401},
		"of another body":        {header("X-Slack-Signature", signedBy(good.secret, strconv.FormatInt(good.at.Unix(), 10), good.body+" ")), 401},
		"of another time":        {header("X-Slack-Request-Timestamp", strconv.FormatInt(good.at.Unix()-1, 10)), 401},
		"six minutes old":        {with(func(s *sending) { s.at = s.at.Add(-6 * time.Minute) }), 401},
		"six minutes ahead":      {with(func(s *sending) { s.at = s.at.Add(6 * time.Minute) }), 401},
		"of the year 1970":       {with(func(s *sending) { s.at = time.Unix(0, 0) }), 401},
		"an invalid time":        {header("X-Slack-Request-Timestamp", "now"), 401},
		"a time out of range":    {header("X-Slack-Request-Timestamp", "99999999999999999999"), 401},
		"GET":                    {with(func(s *sending) { s.method = http.MethodGet }), 405},
		"PUT":                    {with(func(s *sending) { s.method = http.MethodPut }), 405},
		"OPTIONS":                {with(func(s *sending) { s.method = http.MethodOptions }), 405},
		"another path":           {with(func(s *sending) { s.path = "/slack" }), 404},
		"the operator's path":    {with(func(s *sending) { s.path = "/metrics" }), 404},
		"no content type":        {header("Content-Type"), 415},
		"text":                   {header("Content-Type", "text/plain"), 415},
		"a form in parts":        {header("Content-Type", "multipart/form-data; boundary=x"), 415},
		"too large":              {with(func(s *sending) { s.body += "&x=" + strings.Repeat("x", 2<<20) }), 413},
		"large headers":          {header("X-Padding", strings.Repeat("x", 32<<10)), 431},
		"JSON for a form":        {with(func(s *sending) { s.body = payload.Get("payload") }), 400},
		"a form for JSON":        {header("Content-Type", "application/json"), 400},
		"garbage as a form":      {with(func(s *sending) { s.body = "\x00\xff%zz;" }), 400},
		"garbage as JSON":        {asEvent("\x00\xff{"), 400},
		"JSON but not an object": {asEvent("[]"), 400},
		"garbage as a payload":   {asClick("{"), 400},
		"nothing":                {with(func(s *sending) { s.body = "" }), 400},
		"nothing as JSON":        {asEvent(""), 400},
		"two payloads":           {with(func(s *sending) { s.body += "&" + s.body }), 400},
		"payload and command":    {with(func(s *sending) { s.body += "&command=/countersign" }), 400},
		"a click at commands":    {with(func(s *sending) { s.path = transport.CommandsPath }), 400},
		"a command at the menus": {func() sending { s := asCommand("help"); s.path = transport.OptionsPath; return s }(), 400},
		"no challenge":           {asEvent(`{"type":"url_verification"}`), 400},
		"another workspace":      {fresh(func(p map[string]any) { p["team"] = map[string]any{"id": "T0999"} }), 200},
		"no workspace":           {fresh(func(p map[string]any) { delete(p, "team") }), 200},
		"another app":            {fresh(func(p map[string]any) { p["api_app_id"] = "A0999" }), 200},
		"an event from there":    {asEvent(strings.NewReplacer("T1", "T0999", "U1", "U0100", "C1", "C0001", "UBOT", "U0BOT").Replace(mention)), 200},
		"a command from there": {func() sending {
			s := asCommand("help")
			s.body = strings.Replace(s.body, "T0001", "T0999", 1)
			return s
		}(), 200},
		"a command for another": {func() sending {
			s := asCommand("help")
			s.body = strings.Replace(s.body, "A0001", "A0999", 1)
			return s
		}(), 200},
		"an event of no kind":  {asEvent(`{"type":"event_callback","event":{"type":"app_uninstalled"},"team_id":"T0001"}`), 200},
		"events are held back": {asEvent(`{"type":"app_rate_limited","team_id":"T0001","minute_rate_limited":1518467820,"api_app_id":"A0001"}`), 200},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := h.sends(c.sent)
			want := ""
			if c.status >= 400 && c.sent.method != http.MethodHead {
				want = http.StatusText(c.status)
			}
			if status != c.status || c.status != 431 && strings.TrimSpace(text) != want {
				t.Errorf("answered %d %q; want %d %q", status, text, c.status, want)
			}
		})
	}
	h.quiet()
	if r, err := h.workflow.Views.Request(t.Context(), request); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 || len(h.runs()) != 0 {
		t.Errorf("the request is %s with %d decisions, %v; ran %q", r.State, len(r.Decisions), err, h.runs())
	}
	if log := h.log.String(); strings.Contains(log, "panic") || strings.Contains(log, workspace.DemoSigningSecret) {
		t.Error("something panicked, or the secret was written into the log")
	}
	if status, _ := h.sends(good); status != http.StatusOK {
		t.Fatalf("Slack's own request is answered with %d", status)
	}
	h.finds("teo", "#support-approvals", "", "Approved by", "It ran")
}

// The bot answers three kinds of requests immediately, and does not store them. The kinds are the verification of the
// URL for events, the check of the certificate, and the options of a menu.
func TestAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, overHTTP)
	if status, text := h.sends(asEvent(`{"type":"url_verification","token":"x","challenge":"3eZbrw1a<b>"}`)); status != 200 || text != `{"challenge":"3eZbrw1a\u003cb\u003e"}` {
		t.Errorf("a challenge is answered with %d %s", status, text)
	}
	look := sending{method: http.MethodPost, path: transport.CommandsPath, kind: "application/x-www-form-urlencoded", body: "ssl_check=1&token=x", headers: http.Header{"X-Slack-Signature": nil}}
	if status, text := h.sends(look); status != 200 || text != "" {
		t.Errorf("a look at the certificate is answered with %d %s", status, text)
	}
	look.body = "ssl_check=1&command=%2Fcountersign&text=pause&user_id=U0003"
	if status, _ := h.sends(look); status != 200 || len(unhandled(t, h)) != 0 {
		t.Errorf("the payload of a certificate check was stored: %d", status)
	}
	menu := asClick(`{"type":"block_suggestion","user":{"id":"U0001"},"team":{"id":"T0001"},"action_id":"x","value":"a"}`)
	menu.path = transport.OptionsPath
	for range 2 { // the menu is opened twice in the same second
		if status, text := h.sends(menu); status != 200 || text != `{"options":[]}` {
			t.Errorf("a menu is answered with %d %s", status, text)
		}
	}
}

// A repeated request changes nothing. The repeated request may come immediately, with the same signature in another
// spelling, or to a new process.
func TestReplay(t *testing.T) {
	t.Parallel()
	h := newHarness(t, overHTTP)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	m := h.buttonOn("C0002", card, control.ActReject)
	r, err := h.workflow.Views.Request(t.Context(), m.Ref)
	if err != nil {
		t.Fatal(err)
	}
	form := func(reason string) string {
		raw, err := json.Marshal(map[string]any{
			"type": "view_submission", "trigger_id": "1.2.3", "user": map[string]string{"id": "U0002"}, "team": map[string]string{"id": "T0001"},
			"view": map[string]any{"id": "V1", "callback_id": control.ActReject, "private_metadata": control.FormToken{ButtonToken: m, Execution: r.Execution}.String(), "state": map[string]any{
				"values": map[string]any{control.FieldReason: map[string]any{control.FieldReason: map[string]string{"type": "plain_text_input", "value": reason}}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	refused := asClick(form(" ")) // refused for its blank reason; below, the same form is sent with a valid reason
	if status, text := h.sends(refused); status != 200 || !strings.Contains(text, `"response_action":"errors"`) {
		t.Fatalf("a form without a reason is answered with %d %s", status, text)
	}
	event := asEvent(strings.NewReplacer("T1", "T0001", "U1", "U0100", "C1", "C0001", "UBOT", "U0BOT", " hi", " call search_orders {}").Replace(mention))
	command := asCommand("away until 2030-01-02")
	click := h.approval(card, "4.5.6", nil)
	for name, s := range map[string]sending{"an event": event, "a command": command, "a click": click} {
		if status, _ := h.sends(s); status != 200 {
			t.Fatalf("%s is answered with %d", name, status)
		}
	}
	h.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	h.quiet()
	was := h.account()
	replayed := func(when string, want map[string]int) {
		t.Helper()
		shouted := click
		shouted.headers = http.Header{"X-Slack-Signature": {"v0=" + strings.ToUpper(strings.TrimPrefix(signedBy(click.secret, strconv.FormatInt(click.at.Unix(), 10), click.body), "v0="))}}
		for _, again := range []struct {
			name string
			s    sending
		}{{"an event", event}, {"a command", command}, {"a click", click}, {"a click in capitals", shouted}, {"a form", refused}} {
			if status, _ := h.sends(again.s); status != want[again.name] {
				t.Errorf("%s: %s is answered with %d; want %d", when, again.name, status, want[again.name])
			}
		}
		answer, err := h.receive(store.InboxInteraction, []byte(form("now it has one")))
		if said, _ := answer.(map[string]any); err != nil || said["response_action"] != "errors" {
			t.Errorf("%s: a form that was refused is answered with %v, %v", when, answer, err)
		}
		h.quiet()
		if now := h.account(); now != was {
			t.Errorf("%s: it changed\n%s\ninto\n%s", when, was, now)
		}
	}
	replayed("at once", map[string]int{"an event": 200, "a command": 409, "a click": 409, "a click in capitals": 409, "a form": 409})
	h.stop()
	h.start()
	replayed("to a new process", map[string]int{"an event": 200, "a command": 200, "a click": 200, "a click in capitals": 409, "a form": 200})
}

// account summarizes the messages that people see, the absences, the runs, and the deliveries that are not handled yet.
func (h *harness) account() string {
	h.t.Helper()
	var out bytes.Buffer
	for _, channel := range []string{"#support", "#support-approvals", "U0BOT"} {
		for _, who := range []string{"sam", "teo", "ada"} {
			if channel == "#support-approvals" && who == "sam" {
				continue
			}
			fmt.Fprintf(&out, "%s sees %d messages in %s\n", who, len(h.sees(who, channel, "")), channel)
		}
	}
	away, err := h.workflow.Views.Away(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	fmt.Fprintf(&out, "%d away, ran %q, %d to do\n", len(away), h.runs(), len(unhandled(h.t, h)))
	return out.String()
}

// Many copies of a delivery at the same instant count as one delivery.
func TestSameRequestAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, overHTTP)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	request := h.buttonOn("C0002", card, control.ActApprove).Ref
	click := h.approval(card, "1.1.1", nil)
	event := asEvent(fmt.Sprintf(`{"type":"event_callback","api_app_id":"A0001","team_id":"T0001","event_id":"Ev7","event":{"type":"message","user":"U0100","text":"and more","ts":"%s","thread_ts":"%s","channel":"C0001","channel_type":"channel"}}`, "9999999999.000001", root))
	var sending sync.WaitGroup
	var mu sync.Mutex
	statuses := map[string]int{}
	for name, s := range map[string]func() (int, string){"click": func() (int, string) { return h.sends(click) }, "event": func() (int, string) { return h.sends(event) }} {
		for range 16 {
			sending.Go(func() {
				status, _ := s()
				mu.Lock()
				defer mu.Unlock()
				statuses[fmt.Sprint(name, " ", status)]++
			})
		}
	}
	sending.Wait()
	if want := map[string]int{"click 200": 1, "click 409": 15, "event 200": 16}; !maps.Equal(statuses, want) {
		t.Errorf("answered %v; want %v", statuses, want)
	}
	h.finds("sam", "#support", root, "results: executed")
	h.quiet()
	r, err := h.workflow.Views.Request(t.Context(), request)
	if err != nil || len(r.Decisions) != 1 || len(h.runs()) != 1 {
		t.Errorf("%d decisions, %v; ran %q", len(r.Decisions), err, h.runs())
	}
	if denied := strings.Count(h.log.String(), "a click was refused"); denied != 0 {
		t.Errorf("%d copies of the click were handled and refused", denied)
	}
}

// An event that could not be stored is not acknowledged. Slack sends the event again, and this retry is handled.
func TestRetryIsHeard(t *testing.T) {
	t.Parallel()
	disk := &cramped{}
	h := newHarness(t, overHTTP, func(h *harness) {
		h.wrap = func(s store.Store) store.Store { disk.Store = s; return disk }
	})
	event := asEvent(strings.NewReplacer("T1", "T0001", "U1", "U0100", "C1", "C0001", "UBOT", "U0BOT", " hi", " call search_orders {}").Replace(mention))
	disk.full.Store(true)
	if status, _ := h.sends(event); status != http.StatusServiceUnavailable {
		t.Errorf("a delivery that could not be stored is answered with %d", status)
	}
	click := asClick(`{"type":"block_actions","trigger_id":"1.2.3","user":{"id":"U0002"},"team":{"id":"T0001"},"actions":[{"action_id":"approve","value":"x"}]}`)
	if status, _ := h.sends(click); status != http.StatusServiceUnavailable {
		t.Errorf("a click that could not be stored is answered with %d", status)
	}
	disk.full.Store(false)
	if status, _ := h.sends(click); status != http.StatusConflict {
		t.Errorf("the same click again is answered with %d", status)
	}
	event.headers = http.Header{"X-Slack-Retry-Num": {"1"}, "X-Slack-Retry-Reason": {"http_error"}}
	if status, _ := h.sends(event); status != http.StatusOK {
		t.Errorf("the retry is answered with %d", status)
	}
	h.until("what it asks for has run", func() bool { return len(h.runs()) == 1 })
	if !strings.Contains(h.log.String(), "Slack retries a delivery that was not acknowledged in time") {
		t.Error("the log does not mention the retry")
	}
}

// One Request URL may receive events, clicks, forms and commands, because many apps use one URL for all of them.
func TestOneRequestURL(t *testing.T) {
	h := newHarness(t, overHTTP)
	if err := h.slack.SetRequestURLs(t.Context(), delivery.URLsAt(h.address+transport.EventsPath)); err != nil {
		t.Fatal(err)
	}
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.commands("teo", "#support-approvals", "pending")
	h.answered("teo", "#support-approvals", "Waits for you:")
	h.clicks("teo", "#support-approvals", card, control.ActReject)
	h.submits("teo", h.opened("teo", control.ActReject), map[string]any{control.FieldReason: "no receipt"})
	h.finds("sam", "#support", root, "results: rejected")
}

package hook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"weak"

	"countersign/agent/client"
	"countersign/internal/testkit/fakegateway"
)

func newRemoteDesk(t *testing.T, profile Profile) *desk {
	t.Helper()
	d := newDesk(t, "claude-code", profile)
	d.http = &Held{}
	return d
}

// TestHangUp closes the agent's connection at each moment of a call. A hang-up does not withdraw the request. So the
// repeated call continues the request, even at another replica. An approval is claimed only if the agent still waits.
func TestHangUp(t *testing.T) {
	for _, profile := range []Profile{Control, Comfort} {
		t.Run(string(profile), func(t *testing.T) {
			t.Run("during the wait", func(t *testing.T) {
				d := newRemoteDesk(t, profile)
				ctx, hangUp := context.WithCancel(t.Context())
				go func() {
					d.Await("the request arrives", func(list []fakegateway.Request) bool { return len(list) == 1 })
					hangUp()
				}()
				event := d.event()
				if a := d.runIn(ctx, event, d.input(event, d.tool, d.args, "")); allows(a) {
					t.Errorf("%s", a.Out)
				}
				if r := d.Requests()[0]; r.Status != "pending" {
					t.Errorf("the request is %s %s", r.Status, r.Withdrawn)
				}
				d.Change("req_1", func(r *fakegateway.Request) { r.Status = "approved" })
				d.http = &Held{} // another replica
				if a := d.run(event, d.withID(event, "another")); !allows(a) || len(d.Requests()) != 1 {
					t.Errorf("%s with %d requests", a.Out, len(d.Requests()))
				}
				d.run(d.after, d.withID(d.after, "another"))
				if r := d.Requests()[0]; r.Outcome != "succeeded" {
					t.Errorf("the outcome is %q", r.Outcome)
				}
			})
			for path, want := range map[string]string{"/v1/requests": "approved ", "/v1/requests/req_1/claim": "failed failed The call did not run"} {
				t.Run("during "+path, func(t *testing.T) {
					d := newRemoteDesk(t, profile)
					d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
					ctx, hangUp := context.WithCancel(t.Context())
					d.http = &Held{}
					event := d.event()
					// The agent hangs up while the gateway handles the request. The hook notices the hang-up after the
					// gateway's answer.
					local := client.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						d.forward(w, r.WithContext(context.WithoutCancel(r.Context())))
						if r.URL.Path == path {
							hangUp()
						}
					}), fakegateway.Token)
					out := Serve(ctx, Delivery{
						Agent: "claude-code", Profile: profile, Body: []byte(d.input(event, d.tool, d.args, "")), Gate: local, Client: "laptop", Requests: atGateway{d}, Held: d.http,
					})
					if strings.Contains(string(out), `"allow"`) {
						t.Errorf("%s", out)
					}
					if r := d.Requests()[0]; !strings.HasPrefix(r.Status+" "+r.Outcome, want) {
						t.Errorf("the request is %s %s, want %s", r.Status, r.Outcome, want)
					}
				})
			}
		})
	}
}

// The call's outcome is reported after people have asked for the call again, and the later run was claimed. The report
// names the earlier run, so it does not close the later one.
func TestReportOfEarlierRun(t *testing.T) {
	for place, newDesk := range map[string]func(*testing.T, Profile) *desk{
		"over HTTP":              newRemoteDesk,
		"on the agent's machine": func(t *testing.T, p Profile) *desk { return newDesk(t, "claude-code", p) },
	} {
		t.Run(place, func(t *testing.T) {
			d := newDesk(t, Control)
			d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
			event := d.event()
			if a := d.run(event, d.withID(event, "a")); !allows(a) {
				t.Fatalf("%s", a.Out)
			}
			d.Change("req_1", func(r *fakegateway.Request) { r.Again() })
			d.run(d.after, d.withID(d.after, "a"))
			if r := d.Requests()[0]; r.Late != "succeeded" || r.Outcome != "" {
				t.Errorf("the outcome of the earlier run is %q, and that of the later one %q", r.Late, r.Outcome)
			}
		})
	}
}

// forward sends a request to the test gateway.
func (d *desk) forward(w http.ResponseWriter, r *http.Request) {
	d.Helper()
	r.RequestURI = ""
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(d.URL, "http://")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		d.Errorf("%v", err)
		return
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(w, resp.Body); err != nil {
		d.Errorf("%v", err)
	}
	resp.Body.Close()
}

// TestReportsOfEdits reports the outcome of a call whose arguments an approver has changed. The agent reports the
// arguments without the approver's spaces. In the profile comfort, the agent's permission dialog has no id for the call.
func TestReportsOfEdits(t *testing.T) {
	for _, profile := range []Profile{Control, Comfort} {
		t.Run(string(profile), func(t *testing.T) {
			d := newRemoteDesk(t, profile)
			d.OnAsk(func(r *fakegateway.Request) {
				edited := strings.ReplaceAll(d.edited, `":"`, `": "`)
				r.Status, r.Edited = "approved", strings.TrimSuffix(edited, "}")+`,"working_folder":"/home/kim/shop"}`
			})
			event := d.event()
			if a := d.run(event, d.input(event, d.tool, d.args, "")); !allows(a) {
				t.Fatalf("%s", a.Out)
			}
			d.run(d.failure, strings.Replace(d.input(d.failure, d.tool, d.edited, d.failed), "/home/kim/shop", "/home/kim", 1))
			if r := d.Requests()[0]; r.Outcome != "failed exit status 1" {
				t.Errorf("the outcome is %q", r.Outcome)
			}
		})
	}
}

// TestWaitingKeepsNoBody checks that a waiting call does not keep its event in memory. An event can have 8 MiB.
func TestWaitingKeepsNoBody(t *testing.T) {
	d := newRemoteDesk(t, Control)
	ctx, hangUp := context.WithCancel(t.Context())
	body := []byte(d.input(d.before, d.tool, d.args, `,"x":"`+strings.Repeat("x", 1<<20)+`"`))
	kept := weak.Make(&body[0])
	delivery := Delivery{Agent: "claude-code", Profile: Control, Body: body, Client: "laptop", Requests: atGateway{d}, Held: d.http}
	gate, err := client.New(d.URL, fakegateway.Token)
	if err != nil {
		t.Fatal(err)
	}
	delivery.Gate = gate
	done := make(chan []byte, 1)
	go func(delivery Delivery) { done <- Serve(ctx, delivery) }(delivery)
	body, delivery = nil, Delivery{}
	d.Await("the request arrives", func(list []fakegateway.Request) bool { return len(list) == 1 })
	for range 10 {
		runtime.GC()
	}
	if kept.Value() != nil {
		t.Error("the event is still in memory")
	}
	hangUp()
	<-done
	_, _ = body, delivery
}

// TestRefuse checks the answers to events that the gateway does not handle. Such an answer never lets a call run. If
// the event comes before a call, the answer says that the call did not run. No other answer says this. In the profile
// control, the agent's dialog does not decide.
func TestRefuse(t *testing.T) {
	for event, want := range map[string]string{
		"": `"permissionDecision":"deny"`, "PreToolUse": `"permissionDecision":"deny"`, "PreSkillShellCommand": `"hookEventName":"PreSkillShellCommand","permissionDecision":"deny"`,
		"BeforeAll": `"decision":"block"`, "PermissionRequest": `{"systemMessage":"Countersign can't be asked: no. Decide here instead."}`,
		"PostToolUse": `{"systemMessage":"Countersign can't be asked: no."}`, "Stop": `{"systemMessage":"Countersign can't be asked: no."}`,
	} {
		out := string(Refuse("claude-code", event, Comfort, errors.New("no")))
		if !strings.Contains(out, want) || strings.Contains(out, "allow") || strings.HasPrefix(event, "Pre") != strings.Contains(out, "did not run") {
			t.Errorf("%q: %s", event, out)
		}
	}
	const denied = `"decision":{"behavior":"deny","message":"Countersign can't be asked: no. The call was denied and did not run."}`
	if out := string(Refuse("claude-code", "PermissionRequest", Control, errors.New("no"))); !strings.Contains(out, denied) {
		t.Errorf("in the profile control: %s", out)
	}
	broken := Delivery{Agent: "claude-code", Event: "PermissionRequest", Profile: Control, Body: []byte("{"), Held: &Held{}}
	if out := string(Serve(t.Context(), broken)); !strings.Contains(out, `"behavior":"deny"`) {
		t.Errorf("a broken body in the profile control: %s", out)
	}
}

// TestReportAfterLoss reports the outcome of a call that the store lost together with its approval, because the store
// was restored from an older backup.
func TestReportAfterLoss(t *testing.T) {
	d := newRemoteDesk(t, Control)
	d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
	if a := d.run(d.before, d.withID(d.before, "a")); !allows(a) {
		t.Fatalf("%s", a.Out)
	}
	d.Change("req_1", func(r *fakegateway.Request) { r.Status, r.Disposition = "voided", "outcome-unknown" })
	d.run(d.after, d.withID(d.after, "a"))
	if r := d.Requests()[0]; r.Outcome != "succeeded" {
		t.Errorf("the outcome is %q", r.Outcome)
	}
}

// TestEventInURL sends events to a URL that is for another event. In each case, an event before a call gets a denial.
func TestEventInURL(t *testing.T) {
	d := newRemoteDesk(t, Control)
	d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
	for _, inURL := range []string{"PreSkillShellCommand", "PermissionRequest", "PostToolUse", "Stop", "BeforeAll"} {
		out := string(Serve(t.Context(), Delivery{
			Agent: "claude-code", Event: inURL, Profile: Control, Body: []byte(d.input(d.before, d.tool, d.args, "")), Held: &Held{}, Requests: atGateway{d},
		}))
		if !strings.Contains(out, `"hookEventName":"PreToolUse","permissionDecision":"deny"`) {
			t.Errorf("%s: %s", inURL, out)
		}
	}
}

package slackapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/internal/redact"
)

// If Slack or a proxy quotes the request in a bad response of any kind, no logged error contains a token or the
// response_url of a click.
func TestErrorsOfSlackKeepNoSecret(t *testing.T) {
	const token, app, hook = "xoxb-1234-S3cr3tValue", "xapp-1-A0-S3cr3tValue", "/actions/T0001/99/S3cr3tValue"
	bad := map[string]func(w http.ResponseWriter, quoted string){
		"a code":        func(w http.ResponseWriter, q string) { fmt.Fprintf(w, `{"ok":false,"error":%q}`, "odd "+q) },
		"an error page": func(w http.ResponseWriter, q string) { http.Error(w, q, http.StatusBadGateway) },
		"no JSON":       func(w http.ResponseWriter, q string) { fmt.Fprint(w, q) },
		"a redirect": func(w http.ResponseWriter, q string) {
			w.Header().Set("Location", "http://127.0.0.1:1/?"+q)
			w.WriteHeader(http.StatusFound)
		},
		"a broken address": func(w http.ResponseWriter, q string) {
			w.Header().Set("Location", "://"+q)
			w.WriteHeader(http.StatusFound)
		},
		"metadata": func(w http.ResponseWriter, q string) {
			fmt.Fprintf(w, `{"ok":false,"error":"invalid_arguments","response_metadata":{"messages":[%q]}}`, q)
		},
	}
	held, tried := 0, 0
	for name, answer := range bad {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			answer(w, string(body)+"&authorization="+r.Header.Get("Authorization"))
		}))
		api := slack.New(token, slack.OptionAPIURL(srv.URL+"/"), slack.OptionAppLevelToken(app))
		ctx := context.Background()
		for call, do := range map[string]func() error{
			"auth.test": func() error { _, err := api.AuthTestContext(ctx); return err },
			"chat.postMessage": func() error {
				_, _, err := api.PostMessageContext(ctx, "C1", slack.MsgOptionText("x", false))
				return err
			},
			"users.info": func() error { _, err := api.GetUserInfoContext(ctx, "U1"); return err },
			"views.open": func() error { _, err := api.OpenViewContext(ctx, "1", slack.ModalViewRequest{}); return err },
			"socket":     func() error { _, _, err := api.StartSocketModeContext(ctx); return err },
			"answer": func() error {
				_, _, err := api.PostMessageContext(ctx, "C1", slack.MsgOptionResponseURL("http://127.0.0.1:1/hooks.slack.com"+hook, slack.ResponseTypeEphemeral))
				return err
			},
		} {
			err := WithDelay(do())
			if err == nil {
				continue
			}
			tried++
			raw := fmt.Sprintf("%v %+v %q", err, err, err)
			if strings.Contains(raw, "S3cr3tValue") {
				held++
			}
			if said := redact.Text(raw) + redact.Error(err); strings.Contains(said, "S3cr3tValue") {
				t.Errorf("%s, %s: %s", name, call, said)
			}
		}
		srv.Close()
	}
	if held == 0 {
		t.Error("no error contained a secret, so this test proves nothing")
	}
	t.Logf("errors=%d, %d with a secret; 0 logged or stored", tried, held)
}

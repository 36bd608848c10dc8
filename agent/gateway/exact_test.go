package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"countersign/approvers"
)

// A caller gets the exact bytes of edited arguments, in an answer and in the member args_json of an event. In the
// answer and in the receipt, args_sha256 is the hash of these bytes.
func TestEditedArgumentsAreExact(t *testing.T) {
	for name, args := range map[string]string{
		"white space":    "{ \"a\" :\t1 ,\r\n\r \"b\":[ 1,\n2 ] }",
		"escapes":        `{"a":"\u00e9\u2028<&>\/\ud83d\ude00","\u0061b":"é😀"}`,
		"numbers":        `{"a":12345678901234567890123,"b":1.0,"c":1e2,"d":-0.0,"e":1E+2}`,
		"similar names":  `{"a":1,"\u0430":2,"a ":3}`,
		"like an answer": `{"decision":{"args":{"decision":{}}},"args_json":"{}"}`,
		"empty":          `{ }`,
	} {
		t.Run(name, func(t *testing.T) {
			request := edited(args)
			g := testGateway(t, fakeCallers{}, &fakeViews{request: request})
			reply := httptest.NewRecorder()
			g.ServeHTTP(reply, testRequest(t.Context(), http.MethodGet, "/v1/requests/req_1", ""))
			type answer struct {
				ArgsHash string `json:"args_sha256"`
				Receipt  string `json:"receipt"`
				Decision struct {
					Type string          `json:"type"`
					Args json.RawMessage `json:"args"` // the bytes as received
					JSON string          `json:"args_json"`
				} `json:"decision"`
			}
			var got answer
			if err := json.Unmarshal(reply.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, reply.Body)
			}
			if got.ArgsHash != hashOf([]byte(args)) || string(got.Decision.Args) != args || got.Decision.JSON != args || got.Decision.Type != "edit" {
				t.Errorf("the caller gets %q and %q with the hash %s, want %q: %s", got.Decision.Args, got.Decision.JSON, got.ArgsHash, args, reply.Body)
			}
			token, err := jwt.ParseSigned(got.Receipt, []jose.SignatureAlgorithm{jose.EdDSA})
			if err != nil {
				t.Fatal(err)
			}
			var claims ReceiptClaims
			if err := token.UnsafeClaimsWithoutVerification(&claims); err != nil || claims.ArgsHash != hashOf([]byte(args)) {
				t.Errorf("the receipt has %+v (%v)", claims, err)
			}

			request.Execution.State = approvers.ExecutionSucceeded // the last state, so that the stream ends
			g = testGateway(t, fakeCallers{}, &fakeViews{request: request})
			stream := httptest.NewRecorder()
			g.ServeHTTP(stream, testRequest(t.Context(), http.MethodGet, "/v1/requests/req_1", "", "Accept", "text/event-stream"))
			var event answer
			if err := json.Unmarshal(eventData(stream.Body.Bytes()), &event); err != nil {
				t.Fatalf("%v: %s", err, stream.Body)
			}
			if event.Decision.JSON != args || !approvers.EqualArgs(event.Decision.Args, json.RawMessage(args)) {
				t.Errorf("the event has %q: %s", event.Decision.JSON, stream.Body)
			}
		})
	}
}

// eventData returns the data of a stream with one event. eventData reads lines as a browser does: a line ends with CR,
// LF, or both.
func eventData(stream []byte) []byte {
	lines := bytes.ReplaceAll(stream, []byte("\r\n"), []byte("\n"))
	lines = bytes.ReplaceAll(lines, []byte("\r"), []byte("\n"))
	var data [][]byte
	for line := range bytes.SplitSeq(lines, []byte("\n")) {
		if of, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			data = append(data, of)
		}
	}
	return bytes.Join(data, []byte("\n"))
}

// If an approver writes a secret value, only a caller that runs the tool itself gets the value.
func TestSecretsOfAnEdit(t *testing.T) {
	const args = `{"key":"hunter2","n":12345678901234567890}`
	for mode, want := range map[approvers.CallerMode]string{
		approvers.DecideMode:  `"args":` + args + `,`,
		approvers.ExecuteMode: `"args":{"key":"(masked)","n":12345678901234567890},`,
	} {
		c := edited(args)
		c.Conversation.Caller.Caller.Mode, c.Request.Secrets = mode, []string{"key"}
		s, err := testGateway(t, fakeCallers{}, &fakeViews{request: c}).stateOf(c)
		if err != nil {
			t.Fatal(err)
		}
		text := string(s.json())
		if !strings.Contains(text, want) || strings.Contains(text, "hunter2") != (mode == approvers.DecideMode) {
			t.Errorf("in the mode %s, the caller gets %s", mode, text)
		}
	}
}

package httptool_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/internal/redact"
)

// secretsOf lists the secrets in the declarations below. The list has each secret in every encoding in which a server
// may repeat it.
func secretsOf() []string {
	var out []string
	for _, s := range []string{environment["API_TOKEN"], environment["API_KEY"], "Sw0rdf1sh!", "user:Sw0rdf1sh!", "written-out-0123"} {
		quoted, _ := json.Marshal(s)
		out = append(out, s, url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s), strings.Trim(string(quoted), `"`))
	}
	return append(out, base64.StdEncoding.EncodeToString([]byte("user:Sw0rdf1sh!")))
}

const withSecrets = `
url: "SITE/{way}?key=${API_KEY}"
headers: {Authorization: "Bearer ${API_TOKEN}", X-Basic: "Basic ${BASIC}", X-Api-Key: written-out-0123}
arguments: {type: object, properties: {way: {type: string}}, required: [way]}
`

// If a server repeats a secret in its answer, its error or a redirect, the secret does not reach the model, people or
// the log.
func TestSecretsStayInside(t *testing.T) {
	environment["BASIC"] = base64.StdEncoding.EncodeToString([]byte("user:Sw0rdf1sh!"))
	defer delete(environment, "BASIC")
	all := strings.Join(secretsOf(), " | ")
	answer := func(w http.ResponseWriter, r *http.Request) {
		heard := all + " " + r.Header.Get("Authorization") + r.Header.Get("X-Basic") + r.Header.Get("X-Api-Key") + r.RequestURI
		way := strings.TrimPrefix(r.URL.Path, "/")
		w.Header().Set("Content-Type", "text/plain")
		switch way {
		case "json", "pointer":
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]string{"heard": heard})
		case "error":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, heard)
		case "failure":
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, heard)
		case "created":
			w.Header().Set("Location", "/x?"+heard)
			w.WriteHeader(http.StatusCreated)
		case "redirect":
			w.Header().Set("Location", "http://10.0.0.1/?"+url.QueryEscape(heard))
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "userinfo":
			w.Header().Set("Location", "http://x:"+url.PathEscape(environment["API_TOKEN"])+"@public.example/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "host":
			w.Header().Set("Location", "http://written-out-0123.example/"+"?"+url.QueryEscape(heard))
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "file":
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, "\x00"+heard)
		case "cut":
			fmt.Fprint(w, strings.Repeat("x", 1<<10-5)+environment["API_TOKEN"]+strings.Repeat(environment["API_TOKEN"], 200))
		case "manycut": // replacing secrets shortens the text, so bytes beyond the limit could appear
			for i := range 400 {
				fmt.Fprintf(w, "%*s%s", i%7, "", environment["API_TOKEN"])
			}
		case "cuterror":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, strings.Repeat("x", 2<<10-5)+environment["API_TOKEN"]+strings.Repeat(environment["API_TOKEN"], 200))
		case "broken":
			w.Header().Set("Content-Length", "99999")
			fmt.Fprint(w, heard)
		default:
			fmt.Fprint(w, heard)
		}
	}
	s := serve(t, answer)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(redact.Writer(&log), nil))
	for _, method := range []string{"GET", "POST"} {
		for _, way := range []string{"text", "json", "pointer", "error", "failure", "created", "redirect", "userinfo", "host", "file", "cut", "manycut", "cuterror", "broken"} {
			yaml := withSecrets + "method: " + method + "\nmax_result: 1KB\n"
			if way == "pointer" {
				yaml += "result: {pointer: /heard}\n"
			}
			tool := declared(t, s, yaml)
			var files []agent.File
			text, err := tool.Run(t.Context(), agent.Invocation{Args: []byte(`{"way":"` + way + `"}`), Attach: func(f agent.File) error {
				files = append(files, f)
				return nil
			}})
			if text == "" && err == nil {
				t.Errorf("%s %s: neither a result nor an error", method, way)
			}
			said := text + fmt.Sprint(err) + filesText(files) + string(tool.Definition)
			leaks(t, method+" "+way, said)
			logger.Warn("a run", "error", fmt.Sprint(err), "raw", environment["API_TOKEN"])
		}
	}
	leaks(t, "the log", log.String())
}

func filesText(files []agent.File) (all string) {
	for _, f := range files {
		all += f.Name + f.Type + string(f.Data)
	}
	return all
}

func leaks(t *testing.T, where, said string) {
	t.Helper()
	for _, secret := range secretsOf() {
		if strings.Contains(said, secret) {
			t.Errorf("%s tells %q:\n%.400s", where, secret, said)
		}
		// A shortened text must not end with the beginning of a secret.
		line, _, _ := strings.Cut(said, "\n")
		for n := 3; n < len(secret); n++ {
			if strings.HasSuffix(line, secret[:n]) {
				t.Errorf("%s ends with the beginning of %q: %q", where, secret, secret[:n])
			}
		}
	}
}

// A text that looks like a secret, but is not a secret of the tool, stays in the result. The model may have asked for
// this text.
func TestAnswersKeepWhatIsTheirs(t *testing.T) {
	body := `{"token": "abcdefgh", "password": "for a guest", "next": "https://x.example/?api_key=1234567"}`
	s := serve(t, answering("application/json", body))
	if text, _, err := run(t, declared(t, s, reads+"headers: {Authorization: 'Bearer ${API_TOKEN}'}\n"), `{}`); err != nil || text != body {
		t.Errorf("%q, %v", text, err)
	}
}

// The parsed policy contains no value of an environment variable.
func TestPolicyHoldsNoSecrets(t *testing.T) {
	s := serve(t, status(200))
	f := policy(t, s, withSecrets)
	for _, e := range f.HTTP {
		for _, secret := range []string{environment["API_TOKEN"], environment["API_KEY"]} {
			if strings.Contains(fmt.Sprintf("%+v %#v", e, e), secret) {
				t.Error("the declaration holds the value")
			}
		}
	}
}

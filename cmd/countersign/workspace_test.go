package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign/internal/demo/workspace"
)

// TestWorkspaceOnAllAddresses starts the workspace and the demo on all addresses of the machine. The printed URLs must
// be usable, and a bot must get its socket at the host that the bot uses.
func TestWorkspaceOnAllAddresses(t *testing.T) {
	t.Parallel()
	demo := launch(t, t.TempDir(), nil, "demo", "--no-browser", "--addr", "0.0.0.0:0")
	demo.says(`The model .* at http://127\.0\.0\.1:(\d+)/v1`)
	port := launch(t, t.TempDir(), nil, "workspace", "--addr", "0.0.0.0:0").says(`is open at http://127\.0\.0\.1:(\d+)`)
	open := "http://localhost:" + port + "/api/apps.connections.open"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, open, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+workspace.DemoAppToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var socket struct{ URL string }
	if err := json.NewDecoder(response.Body).Decode(&socket); err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(socket.URL); err != nil || !strings.HasPrefix(u.Host, "localhost:") {
		t.Errorf("a bot at localhost gets the socket %q (%v)", socket.URL, err)
	}
}

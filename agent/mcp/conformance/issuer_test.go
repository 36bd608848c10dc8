package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// issuerOf asks the suite's MCP server for the address of its authorization server. The address changes in each run.
// In production, the policy has a fixed address.
func issuerOf(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource" + u.Path, "/.well-known/oauth-protected-resource"} {
		u.Path = path
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return "", err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		var says struct {
			AuthorizationServers []string `json:"authorization_servers"`
		}
		err = json.NewDecoder(resp.Body).Decode(&says)
		resp.Body.Close()
		if err == nil && len(says.AuthorizationServers) > 0 {
			return says.AuthorizationServers[0], nil
		}
	}
	return "", fmt.Errorf("%s does not say who signs clients in", address)
}

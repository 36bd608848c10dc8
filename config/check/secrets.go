package check

import (
	"slices"
	"strings"

	"countersign/config"
)

// secretNames lists words that appear in the names of secret headers and parameters.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "api_key"}

// writtenSecrets warns about secrets in headers and queries that are written in the policy file. Everybody who reads
// the file can read these secrets.
func (c *checker) writtenSecrets() {
	for _, e := range c.file.HTTP {
		c.writtenHeaders("http."+e.Name, e.Headers)
		c.writtenQuery("http."+e.Name+".url", e.Address.Query)
	}
	for _, o := range c.file.OpenAPI {
		c.writtenHeaders("openapi."+o.Name, o.Headers)
		c.writtenQuery("openapi."+o.Name+".query", o.Query)
	}
}

func (c *checker) writtenHeaders(path string, headers []config.Header) {
	for _, h := range headers {
		if secretName(h.Name) && len(h.Value.Variables())+len(h.Value.Arguments()) == 0 {
			c.warn(path+".headers."+h.Name, "the file contains this secret in plain text", "keep it in the environment, and write ${NAME} here")
		}
	}
}

func (c *checker) writtenQuery(path string, query []config.QueryPart) {
	for _, q := range query {
		if secretName(q.Name.String()) && len(q.Value.Variables())+len(q.Value.Arguments()) == 0 {
			c.warn(path, "the file contains the secret "+q.Name.String()+" in plain text", "keep it in the environment, and write ${NAME} here")
		}
	}
}

func secretName(name string) bool {
	return slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(strings.ToLower(name), s) })
}

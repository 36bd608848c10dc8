package config

import (
	"slices"
	"strings"
)

// secretNames are parts of the names of headers and parameters that hold secrets.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "api_key"}

// writtenSecrets warns of secrets that stand in the file themselves, where whoever reads the policy reads them.
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

func (c *checker) writtenHeaders(path string, headers []Header) {
	for _, h := range headers {
		if secretName(h.Name) && len(h.Value.Variables())+len(h.Value.Arguments()) == 0 {
			c.odd(path+".headers."+h.Name, "a secret stands in the file", "keep it in the environment, and write ${NAME} here")
		}
	}
}

func (c *checker) writtenQuery(path string, query []QueryPart) {
	for _, q := range query {
		if secretName(q.Name.String()) && len(q.Value.Variables())+len(q.Value.Arguments()) == 0 {
			c.odd(path, q.Name.String()+" is a secret that stands in the file", "keep it in the environment, and write ${NAME} here")
		}
	}
}

func secretName(name string) bool {
	return slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(strings.ToLower(name), s) })
}

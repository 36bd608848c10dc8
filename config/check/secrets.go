package check

import (
	"strings"

	"countersign/config"
)

// writtenSecrets warns about secrets in headers and queries that are written in the policy file. Everybody who reads
// the file can read these secrets. writtenSecrets also warns about values of the environment in addresses without
// encryption.
func (c *checker) writtenSecrets() {
	for _, e := range c.file.HTTP {
		c.writtenHeaders("http."+e.Name, e.Headers)
		c.writtenQuery("http."+e.Name+".url", e.Address.Query)
		if names := e.Address.Variables(); len(names) > 0 && e.Address.Unencrypted() {
			c.warn("http."+e.Name+".url", "sends "+strings.Join(names, " and ")+" without encryption", "write https:// if this is a secret")
		}
	}
	for _, o := range c.file.OpenAPI {
		c.writtenHeaders("openapi."+o.Name, o.Headers)
		c.writtenQuery("openapi."+o.Name+".query", o.Query)
	}
}

func (c *checker) writtenHeaders(path string, headers []config.Header) {
	for _, h := range headers {
		if config.WrittenSecret(h.Name, h.Value) {
			c.warn(path+".headers."+h.Name, "the file contains this secret in plain text", "keep it in the environment, and write ${NAME} here")
		}
	}
}

func (c *checker) writtenQuery(path string, query []config.QueryPart) {
	for _, q := range query {
		if config.WrittenSecret(q.Name.String(), q.Value) {
			c.warn(path, "the file contains the secret "+q.Name.String()+" in plain text", "keep it in the environment, and write ${NAME} here")
		}
	}
}

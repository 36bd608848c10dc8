package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/config"
	"countersign/config/condition"
)

// maskedArguments compares the key secrets with the tools' schemas. If a name is similar to the name of an argument, it
// is probably misspelt, and the argument would be shown to everybody. maskedArguments then reports an error.
func (c *checker) maskedArguments() {
	for _, tool := range c.registered {
		t, named := c.policy.Tool(tool.Name, "")
		if !named || len(t.Secrets) == 0 || len(tool.Schema) == 0 || slices.Contains(t.Secrets, "*") {
			continue
		}
		arguments := condition.ArgumentShape(tool.Schema)
		for i, secret := range t.Secrets {
			at := fmt.Sprintf("tools.%s.secrets[%d]", tool.Name, i)
			missing := noArgument(tool.Name, arguments, strings.Split(secret, "."))
			switch {
			case missing == nil:
			case missing.similar != "":
				c.wrong(at, missing.message+", so nothing of this name is masked", missing.hint)
			default:
				c.warn(at, missing.message+", so this masks nothing", missing.hint)
			}
		}
	}
}

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

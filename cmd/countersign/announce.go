package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers"
)

// announce prints the first steps for a new user, and opens the page.
func announce(out io.Writer, st demoEnv, s setup, o demoOptions) {
	page := st.base + "/#/U0100/C0001"
	fmt.Fprintf(out, "Countersign's demo is open.\n\n  The workspace   %s\n  The sample shop %s/shop/\n  The model       %s at %s\n", page, st.base, s.model.Name, modelPlace(s.model))
	if o.data == "" {
		fmt.Fprintf(out, "  Kept            nothing; start with --data DIR to go on later\n")
	} else {
		fmt.Fprintf(out, "  Kept            in %s\n", o.data)
	}
	if a, ok := st.l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintf(out, "\nThis address is open to the network: whoever reaches it can act as anybody in the workspace. Use --addr 127.0.0.1:8484 to keep it to this machine.\n")
	}
	if call := suggestion(s.tools, s.tools.Policy()); call != "" {
		fmt.Fprintf(out, "\nYou are Sam. Write in #support:  @Countersign %s\nThen become one of those who are asked, and decide. Ctrl-C ends the demo.\n", call)
	} else {
		fmt.Fprintf(out, "\nYou are Sam. Write in #support:  @Countersign refund ORD-123, it arrived broken\nThen become Teo, the Team Lead, and decide. Ctrl-C ends the demo.\n")
	}
	if names := s.tools.PolicyServers(); len(names) > 0 {
		fmt.Fprintf(out, "\nThe policy's servers are there too: %s. Write \"help\" to see how their tools are called.\n", strings.Join(names, ", "))
	}
	if s.control != nil {
		fmt.Fprintf(out, "\nAs its operator, in another terminal:  export COUNTERSIGN_STORE='bolt:%s'  and then  countersign pending\n", st.path)
	}
	if !o.noBrowser {
		openBrowser(page)
	}
}

// suggestion returns a call of one of the policy's own tools in the syntax of the scripted model: a named tool that
// waits for somebody, if there is one. It is empty if the policy has no such tools, or none is known yet.
func suggestion(tools *catalog.Catalog, policy *approvers.Policy) string {
	first := ""
	for _, t := range tools.All() {
		if t.Source == "" || t.Blocked != "" || tools.IsOwn(t.Source) {
			continue
		}
		var in struct{ Required []string }
		_ = json.Unmarshal(t.Schema, &in) // always an object, or the tool would not be registered
		call := "call " + t.Name
		for _, name := range in.Required {
			call += " " + name + "=…"
		}
		if p, named := policy.Tool(t.Name, ""); named && p.Confirm {
			return call
		}
		if first == "" {
			first = call
		}
	}
	return first
}

func modelPlace(m agent.Model) string {
	if m.BaseURL == "" {
		return "OpenAI"
	}
	return m.BaseURL
}

// openBrowser opens the page if the machine has a browser. Errors don't matter, because the address was printed.
func openBrowser(url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(name, args...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // reaps it
	}
}

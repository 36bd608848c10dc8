package mcp

import (
	"slices"
	"strings"
	"testing"

	"countersign/agent"
)

// A started server finds four variables and what the policy names: none of this program's own.
func TestCleanEnvironment(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-never-for-servers")
	t.Setenv("OPENAI_API_KEY", "sk-never-for-servers")
	t.Setenv("FILES_TOKEN", "only-because-it-is-named")
	s := program(t, "sane", "sane")
	s.Env["TOKEN"] = "${FILES_TOKEN}"
	_, o := running(t, quick(), s)
	text, err := call(t, o.tool(t, "sane.environment"), `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range strings.Split(text, "\n") {
		name, _, _ := strings.Cut(one, "=")
		names = append(names, name)
		if !slices.Contains([]string{"PATH", "HOME", "LANG", "TMPDIR", "TOKEN", roleKey}, name) {
			t.Errorf("the server finds %s", name)
		}
	}
	if !slices.Contains(names, "PATH") || !strings.Contains(text, "TOKEN=only-because-it-is-named") {
		t.Errorf("it does not find what it needs: %q", names)
	}
	if strings.Contains(text, "never-for-servers") {
		t.Error("it finds a secret of this program's own")
	}
}

// What is offered is what a registry takes.
func TestOffered(t *testing.T) {
	_, o := running(t, quick(), program(t, "sane", "sane"))
	o.tool(t, "sane.echo")
	var r agent.Registry
	if errs := r.Replace("sane", o.tools["sane"]); len(errs) > 0 {
		t.Error(errs)
	}
	tool := o.tool(t, "sane.environment")
	if tool.Claims.Title != "Environment" || tool.Claims.ReadOnly == nil || !*tool.Claims.ReadOnly || tool.Presumed != 0 || tool.Effect != "unprotected" {
		t.Errorf("%+v", tool)
	}
	if text, err := call(t, o.tool(t, "sane.echo"), `{"a" : 1.0, "b":"<&>"}`); text != `{"a" : 1.0, "b":"<&>"}` || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

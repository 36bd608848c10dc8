package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/agent/pins"
	"countersign/cmd/countersign/cli"
	"countersign/internal/visible"
)

// toolsOptions are the flags of countersign tools.
type toolsOptions struct {
	policy  string
	source  string
	json    bool
	offline bool
}

func toolsCommand() *cobra.Command {
	var o toolsOptions
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "What can be called: its risk, who lets it through, where it comes from, and whether it is as pinned",
		Long: `Asks the policy's servers what they offer, and lists every tool: its name, its risk, who lets its calls through, its source, what a second run would do, how it
stands to what is pinned in countersign.lock, and the hash of its definition.

A tool that is new, or that drifted (its source describes it otherwise than when it was pinned), is blocked. Look at it with "countersign tools show NAME", and let it be called
with "countersign tools pin NAME".

Exit codes: 0 every tool is as pinned · 1 a tool is new, drifted, refused or gone · 2 wrong usage or policy · 3 a server can't be reached.`,
		Example: `  countersign tools
  countersign tools --source files --json
  countersign tools show files.read_file
  countersign tools pin --source files`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := look(cmd.Context(), o.policy, o.offline)
			if err != nil {
				return err
			}
			return listTools(cmd.OutOrStdout(), s, o)
		},
	}
	f := cmd.Flags()
	cmd.PersistentFlags().StringVar(&o.policy, "policy", "", "the policy file; COUNTERSIGN_POLICY without it")
	cmd.PersistentFlags().StringVar(&o.source, "source", "", "only the tools of this server or OpenAPI file, by its name in the policy")
	f.BoolVar(&o.json, "json", false, "print JSON: a list with one object for each tool")
	f.BoolVar(&o.offline, "offline", false, "ask no server: what is pinned is what there is")
	cmd.AddCommand(toolsShowCommand(&o), toolsPinCommand(&o))
	return cmd
}

// listed is the JSON form of a tool.
type listed struct {
	Name    string `json:"name"`
	Risk    string `json:"risk"`
	Gate    string `json:"gate"`
	Source  string `json:"source"` // empty: compiled in
	Effect  string `json:"effect"`
	Pin     string `json:"pin"` // same, waiting, new, drifted, gone, refused; empty: needs no pin
	Hash    string `json:"hash,omitempty"`
	Blocked string `json:"blocked,omitempty"` // the reason why it can't be called
}

// isFrom reports whether a tool belongs to a source as --source names it. An empty name matches all.
func isFrom(t agent.Status, source string) bool {
	return source == "" || t.Tool.Source == source || t.Tool.Source == apiSource(source)
}

// chosen returns the tools of the command's source.
func (s *toolReport) chosen(source string) ([]agent.Status, error) {
	var out []agent.Status
	for _, t := range s.tools {
		if isFrom(t, source) {
			out = append(out, t)
		}
	}
	if len(out) > 0 || source == "" || s.hasSource(source) {
		return out, nil
	}
	return nil, cli.Misused("the policy has no source %s; its sources are %s", visible.Line(source), orWords(strings.Join(s.sources(), ", "), "none"))
}

// sources lists the policy's servers and OpenAPI files.
func (s *toolReport) sources() (out []string) {
	for _, server := range s.file.Servers {
		out = append(out, server.Name)
	}
	for _, api := range s.file.OpenAPI {
		out = append(out, api.Name)
	}
	return out
}

func (s *toolReport) hasSource(name string) bool {
	for _, known := range s.sources() {
		if known == name {
			return true
		}
	}
	return false
}

func listTools(out io.Writer, s *toolReport, o toolsOptions) error {
	tools, err := s.chosen(o.source)
	if err != nil {
		return err
	}
	rows := []listed{}
	for _, t := range tools {
		p, _ := s.policy.Tool(t.Tool.Name, "")
		row := listed{
			Name: t.Tool.Name, Risk: p.Risk.String(), Gate: s.gate(t), Source: t.Tool.Source, Effect: string(t.Tool.Effect), Pin: string(t.State), Hash: hashOf(t), Blocked: t.Tool.Blocked,
		}
		if why := s.refusal(t); why != "" {
			row.Pin, row.Blocked, row.Hash = "refused", "refused: "+why, ""
		}
		rows = append(rows, row)
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(rows); err != nil {
			return cli.CouldNot("the list can't be written: %w", err)
		}
	} else {
		s.printTools(out, tools, rows)
	}
	if !o.json {
		s.printLeft(out, o.source)
	}
	return s.verdict(out, tools, o)
}

func (s *toolReport) printTools(out io.Writer, tools []agent.Status, rows []listed) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tRISK\tWHO LETS IT THROUGH\tSOURCE\tEFFECT\tPIN\tHASH")
	for i, r := range rows {
		source := orWords(r.Source, "built in")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Risk, r.Gate, source, r.Effect, s.pinWord(tools[i]), orWords(pins.Short(r.Hash), "-"))
	}
	w.Flush()
}

// verdict returns the command's error, which says what has to be done.
func (s *toolReport) verdict(out io.Writer, tools []agent.Status, o toolsOptions) error {
	var open, gone, refused []string
	for _, t := range tools {
		why := s.refusal(t)
		switch {
		case why != "":
			if refused = append(refused, t.Tool.Name); !o.json {
				fmt.Fprintf(out, "\n%s is refused: %s\n", t.Tool.Name, why)
			}
		case t.State.Open():
			open = append(open, t.Tool.Name)
		case t.State == pins.Gone:
			gone = append(gone, t.Tool.Name)
		}
	}
	down := false
	for _, name := range s.downNames() {
		if o.source != "" && o.source != name {
			continue
		}
		down = true
		if !o.json {
			fmt.Fprintf(out, "\n%s can't be reached, so its tools are shown as they are pinned: %s\n", name, s.down[name])
		}
	}
	switch {
	case len(open) > 0:
		return cli.AnswerNo("%s not as pinned and so blocked: %s. Look at each with \"countersign tools show NAME\"; \"countersign tools pin NAME\" lets it be called",
			areCount(len(open), "tool"), strings.Join(open, ", "))
	case len(refused) > 0:
		return cli.AnswerNo("%s refused and so blocked, because what its source says of it now can't be used: %s. Have its source mended; a pin can't help",
			areCount(len(refused), "pinned tool"), strings.Join(refused, ", "))
	case len(gone) > 0:
		return cli.AnswerNo("%s not offered any more: %s. \"countersign tools pin --all --prune\" forgets them", areCount(len(gone), "pinned tool"), strings.Join(gone, ", "))
	case down:
		return cli.CouldNot("not every server could be reached, so it can't be said whether all tools are as pinned")
	}
	return nil
}

// areCount returns a count with its verb: "1 tool is", "2 tools are".
func areCount(n int, noun string) string {
	if n == 1 {
		return cli.Count(n, noun) + " is"
	}
	return cli.Count(n, noun) + " are"
}

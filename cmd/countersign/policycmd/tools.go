package policycmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/visible"
)

type toolsOptions struct {
	policy  string
	source  string
	json    bool
	offline bool
}

// Tools returns the command "countersign tools".
func Tools() *cobra.Command {
	var o toolsOptions
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Lists the tools: their risk, who approves them, their source, and whether they are as pinned",
		Long: `Asks the policy's servers what they offer, and lists every tool: its name, its risk, who lets its calls through, its source, what a second run would do,
whether it is as pinned in countersign.lock, and the hash of its definition.

A tool that is new, or that drifted (its source describes it differently than when it was pinned), is blocked. Look at it with "countersign tools show NAME", and let it be called
with "countersign tools pin NAME".

Exit codes: 0 every tool is as pinned · 1 a tool is new, drifted, refused or gone · 2 wrong usage or policy · 3 a server can't be reached.`,
		Example: `  countersign tools
  countersign tools --source files --json
  countersign tools show files.read_file
  countersign tools pin --source files`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := examine(cmd.Context(), o.policy, o.offline)
			if err != nil {
				return err
			}
			return listTools(cmd.OutOrStdout(), s, o)
		},
	}
	f := cmd.Flags()
	cmd.PersistentFlags().StringVar(&o.policy, "policy", "", "the policy file; default: COUNTERSIGN_POLICY")
	cli.PathFlags(cmd.PersistentFlags(), "policy")
	cmd.PersistentFlags().StringVar(&o.source, "source", "", "only the tools of this server or OpenAPI file, by its name in the policy")
	f.BoolVar(&o.json, "json", false, "print JSON: a list with one object for each tool")
	f.BoolVar(&o.offline, "offline", false, "ask no server: show the pinned definitions")
	cmd.AddCommand(toolsShowCommand(&o), toolsPinCommand(&o))
	return cmd
}

// listed is the JSON form of a tool.
type listed struct {
	Name    string `json:"name"`
	Risk    string `json:"risk"`
	Gate    string `json:"gate"`
	Source  string `json:"source"` // empty: the tool is compiled into the program
	Effect  string `json:"effect"`
	Pin     string `json:"pin"` // same, waiting, new, drifted, gone, refused; empty: needs no pin
	Hash    string `json:"hash,omitempty"`
	Blocked string `json:"blocked,omitempty"` // the reason why the tool can't be called; empty: the tool can be called
}

// toolReport prints the state of a policy's tools.
type toolReport struct{ *catalog.Report }

// examine reads a policy with its lock file. If the parameter alone is true, examine contacts no server. Otherwise,
// examine asks the servers for their tools.
func examine(ctx context.Context, path string, alone bool) (toolReport, error) {
	path, err := policyfile.Path(path)
	if err != nil {
		return toolReport{}, err
	}
	file, err := config.ReadPolicy(path)
	if err != nil {
		return toolReport{}, cli.Misused("the policy can't be used:\n%w", err)
	}
	var r *catalog.Report
	if alone {
		r, err = catalog.ExamineOffline(file, path)
	} else {
		r, err = catalog.Examine(ctx, file, path, cli.ThisBuild().Version)
	}
	return toolReport{r}, policyfile.Misconfigured(err)
}

// The method "chosen" returns the tools of the source that the command names. If the command names no source, it
// returns all tools.
func (s toolReport) chosen(source string) ([]agent.Status, error) {
	out := s.From(source)
	if len(out) > 0 || source == "" || slices.Contains(s.Sources(), source) {
		return out, nil
	}
	return nil, cli.Misused("the policy has no source %s; its sources are %s", visible.Line(source), cmp.Or(strings.Join(s.Sources(), ", "), "none"))
}

// find returns a tool by name.
func (s toolReport) find(name string) (agent.Status, error) {
	var near []string
	for _, t := range s.Tools {
		if t.Tool.Name == name {
			return t, nil
		}
		if _, bare, _ := strings.Cut(t.Tool.Name, "."); bare == name || strings.EqualFold(t.Tool.Name, name) {
			near = append(near, t.Tool.Name)
		}
	}
	switch {
	case len(near) > 0:
		return agent.Status{}, cli.Misused("there is no tool %s; did you mean %s?", visible.Line(name), strings.Join(near, " or "))
	case len(s.Down) > 0:
		return agent.Status{}, cli.Misused("there is no tool %s, as far as can be said: %s", visible.Line(name), s.downSentence())
	}
	return agent.Status{}, cli.Misused("there is no tool %s; countersign tools lists them", visible.Line(name))
}

// downSentence returns a sentence that names the unreachable sources.
func (s toolReport) downSentence() string {
	var parts []string
	for _, name := range s.downNames() {
		parts = append(parts, fmt.Sprintf("%s can't be reached: %s", name, s.Down[name]))
	}
	return strings.Join(parts, "; ")
}

func (s toolReport) downNames() []string { return slices.Sorted(maps.Keys(s.Down)) }

func listTools(out io.Writer, s toolReport, o toolsOptions) error {
	tools, err := s.chosen(o.source)
	if err != nil {
		return err
	}
	rows := []listed{}
	for _, t := range tools {
		p, _ := s.Policy.Tool(t.Tool.Name, "")
		row := listed{
			Name: t.Tool.Name, Risk: p.Risk.String(), Gate: s.gate(t), Source: t.Tool.Source, Effect: string(t.Tool.Effect), Pin: string(t.State), Hash: hashOf(t), Blocked: t.Tool.Blocked,
		}
		if why := s.Refusal(t); why != "" {
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

func (s toolReport) printTools(out io.Writer, tools []agent.Status, rows []listed) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tRISK\tWHO LETS IT THROUGH\tSOURCE\tEFFECT\tPIN\tHASH")
	for i, r := range rows {
		source := cmp.Or(r.Source, "built in")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Risk, r.Gate, source, r.Effect, s.pinWord(tools[i]), cmp.Or(pins.Short(r.Hash), "-"))
	}
	w.Flush()
}

// verdict prints the refused tools and the unreachable servers, and returns an error that tells the operator what to
// do. If every tool is as pinned, verdict returns nil.
func (s toolReport) verdict(out io.Writer, tools []agent.Status, o toolsOptions) error {
	var open, gone, refused []string
	for _, t := range tools {
		why := s.Refusal(t)
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
			fmt.Fprintf(out, "\n%s can't be reached, so its tools are shown as they are pinned: %s\n", name, s.Down[name])
		}
	}
	switch {
	case len(open) > 0:
		return cli.AnswerNo("%s not as pinned and so blocked: %s. Look at each with \"countersign tools show NAME\"; \"countersign tools pin NAME\" lets it be called",
			areCount(len(open), "tool"), strings.Join(open, ", "))
	case len(refused) > 0:
		return cli.AnswerNo("%s refused and so blocked, because the current definition of its source can't be used: %s. Have the source corrected; a pin can't help",
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

// printLeft prints the problems of a source's tool definitions, for example that a definition is invalid. If source is
// empty, printLeft prints the problems of all sources.
func (s toolReport) printLeft(out io.Writer, source string) {
	for i, l := range s.LeftOutOf(source) {
		if i == 0 {
			fmt.Fprintln(out, "\nProblems with tool definitions:")
		}
		fmt.Fprintf(out, "  %s: %s\n", catalog.NameInPolicy(l.Source), l.Reason)
	}
}

// gate describes briefly how the policy handles a tool's calls if no rule matches. The text is a word such as "auto" or
// "blocked", or names the approvers.
func (s toolReport) gate(t agent.Status) string {
	if !t.Tool.Callable(s.Policy) {
		return "blocked"
	}
	plain := *s.Policy
	plain.Tools = slices.Clone(plain.Tools)
	for i := range plain.Tools {
		plain.Tools[i].Rules = nil
	}
	policy, _ := s.Policy.Tool(t.Tool.Name, "")
	plan := plain.Plan(approvers.Call{Tool: t.Tool.Name, Effect: t.Tool.Effect})
	words := ""
	switch plan.Verdict {
	case approvers.Auto:
		words = "auto"
		if policy.MaxAuto.Count > 0 {
			words += " " + policy.MaxAuto.String()
		}
	case approvers.Ask:
		var stages []string
		for _, stage := range plan.Stages {
			stages = append(stages, stage.String())
		}
		words = strings.Join(stages, ", then ")
	case approvers.Observed:
		words = "observed"
	default:
		words = "refused"
	}
	if len(policy.Rules) > 0 {
		words += ", or more by rule"
	}
	return words
}

// pinWord describes the state of a tool relative to its pin. If the tool's current definition can't be used, pinWord
// returns REFUSED.
func (s toolReport) pinWord(t agent.Status) string {
	if s.Refusal(t) != "" {
		return "REFUSED"
	}
	return pinWord(t.State)
}

// pinWord describes the state of a tool relative to its pin.
func pinWord(s pins.State) string {
	switch s {
	case pins.None:
		return "not needed"
	case pins.Same:
		return "pinned"
	case pins.Waiting:
		return "pinned, not asked"
	}
	return strings.ToUpper(string(s))
}

// hashOf returns the hash of a tool's definition, or "" for a tool that needs no pin.
func hashOf(t agent.Status) string {
	if t.State == pins.None || t.Definition == nil {
		return ""
	}
	hash, err := pins.Hash(t.Definition)
	if err != nil {
		return ""
	}
	return hash
}

func toolsShowCommand(o *toolsOptions) *cobra.Command {
	var alone bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Shows one tool: its definition, who would approve it, and what changed since it was pinned",
		Long: `Prints all that is known about a tool. Characters in its definition that can't be seen, or that look like others, are written as code points: ⟨U+200B⟩.

Exit codes: 0 it is as pinned · 1 it is new, drifted or gone · 2 there is no such tool · 3 its server can't be reached.`,
		Example: `  countersign tools show files.read_file`,
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := examine(cmd.Context(), o.policy, alone)
			if err != nil {
				return err
			}
			t, err := s.find(args[0])
			if err != nil {
				return err
			}
			return s.show(cmd.OutOrStdout(), t)
		},
	}
	cmd.Flags().BoolVar(&alone, "offline", false, "ask no server: show the pinned definitions")
	return cmd
}

// show prints a tool. The error tells the operator what to do about the tool.
func (s toolReport) show(out io.Writer, t agent.Status) error {
	p, _ := s.Policy.Tool(t.Tool.Name, "")
	fmt.Fprintf(out, "%s\n", t.Tool.Name)
	row := func(name, value string) { fmt.Fprintf(out, "  %-9s %s\n", name, value) }
	row("risk", p.Risk.String())
	row("gate", s.gate(t))
	row("source", cmp.Or(t.Tool.Source, "built in"))
	row("effect", string(t.Tool.Effect))
	for _, c := range claims(t) {
		row("claims", c)
	}
	row("pin", s.pinOf(t))
	for _, note := range t.Notes {
		row("note", visible.Text(note))
	}
	fmt.Fprintln(out)
	_, steps := s.Policy.Explain(approvers.Call{Tool: t.Tool.Name, Effect: t.Tool.Effect, Facts: approvers.Facts{Now: time.Now()}})
	fmt.Fprintf(out, "A call without arguments: %s\n\n", strings.Join(steps, " "))
	printDefinition(out, t)
	if t.Pinned != nil {
		fmt.Fprintln(out, "\nWhat changed since it was pinned (- as pinned, + as it is now)")
		printDiff(out, t)
	}
	switch {
	case s.Refusal(t) != "":
		return cli.AnswerNo("its source describes it in a way that can't be used: %s", s.Refusal(t))
	case t.State.Open():
		return cli.AnswerNo("it is not as pinned, and so blocked; \"countersign tools pin %s\" lets it be called", t.Tool.Name)
	case t.State == pins.Gone:
		return cli.AnswerNo("its source does not offer it any more; \"countersign tools pin --all --prune\" forgets it")
	case s.Down[t.Tool.Source] != "":
		return cli.CouldNot("%s can't be reached, so this is the tool as it is pinned: %s", t.Tool.Source, s.Down[t.Tool.Source])
	}
	return nil
}

// pinOf describes a tool's state relative to its pin, and names the person who pinned the tool.
func (s toolReport) pinOf(t agent.Status) string {
	words := pinWord(t.State)
	if why := s.Refusal(t); why != "" {
		words = "refused: " + why
	}
	if hash := hashOf(t); hash != "" {
		words += ", " + hash
	}
	if p, ok := s.Lock.Tool(t.Tool.Name); ok {
		words += fmt.Sprintf("; pinned by %s at %s, first seen at %s", visible.Line(p.By), p.PinnedAt.Format(time.RFC3339), p.FirstSeen.Format(time.RFC3339))
	}
	return words
}

// The function "claims" lists the source's claims about a tool, as quotations.
func claims(t agent.Status) []string {
	var out []string
	if title := t.Tool.Claims.Title; title != "" {
		out = append(out, fmt.Sprintf("its title is %q", visible.Text(title)))
	}
	for _, words := range t.Tool.Claims.Words() {
		out = append(out, "it says: "+words)
	}
	return out
}

// printDefinition prints the complete definition of a tool, with invisible characters written out.
func printDefinition(out io.Writer, t agent.Status) {
	if t.Definition == nil {
		fmt.Fprintf(out, "%s\n\nArguments\n%s\n", visible.Text(t.Tool.Description), indented(t.Tool.Schema))
		return
	}
	fmt.Fprintf(out, "What its source says of it\n%s\n", indented(t.Definition))
}

// The function "indented" formats JSON for reading.
func indented(raw []byte) string {
	text, err := jsontext.AppendFormat(nil, raw, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true),
		jsontext.Multiline(true), jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  "))
	if err != nil {
		text = raw
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		rest := strings.TrimLeft(line, " ") // indentation is left as it is, because it can't hide anything
		lines[i] = line[:len(line)-len(rest)] + visible.Text(rest)
	}
	return "  " + strings.Join(lines, "\n")
}

func printDiff(out io.Writer, t agent.Status) {
	for _, line := range pins.Diff(t.Pinned, t.Definition) {
		fmt.Fprintln(out, "  "+line)
	}
}

package policycmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/pins"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
)

type pinOptions struct {
	all   bool
	yes   bool
	prune bool
}

func toolsPinCommand(o *toolsOptions) *cobra.Command {
	var p pinOptions
	cmd := &cobra.Command{
		Use:   "pin [NAME…]",
		Short: "Pins new and changed tools, so that they can be called",
		Long: `Asks the policy's servers what they offer, and lists what is new and what changed since it was pinned, with the changes. After your
confirmation, the command writes countersign.lock beside the policy: the definitions, with who pinned them. A running bot loads the file within seconds.
"countersign tools show NAME" prints a definition; for tools that you name here, new definitions are printed too.

Pin what you have read: the words of a definition are what the model follows. A server that can't be reached keeps its pins, and none of its tools is pinned.

Exit codes: 0 the tools are pinned, or nothing had to be pinned · 1 you did not confirm · 2 wrong usage or policy · 3 a server can't be reached.`,
		Example: `  countersign tools pin files.read_file
  countersign tools pin --source files
  countersign tools pin --all --yes --prune`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch ways := count3(len(args) > 0, o.source != "", p.all); {
			case ways == 0:
				return cli.Misused("say which tools to pin: NAME…, or --source NAME, or --all")
			case ways > 1:
				return cli.Misused("NAME…, --source NAME and --all exclude each other: write only one of them")
			}
			s, err := examine(cmd.Context(), o.policy, false)
			if err != nil {
				return err
			}
			return s.pin(cmd, args, o.source, p)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&p.all, "all", false, "the tools of every source")
	f.BoolVar(&p.yes, "yes", false, "pin without asking, when somebody has already read the definitions")
	f.BoolVar(&p.prune, "prune", false, "also forget the pins of tools that are not offered any more, and of sources that the policy does not name")
	return cmd
}

func count3(ways ...bool) (n int) {
	for _, way := range ways {
		if way {
			n++
		}
	}
	return n
}

// pin shows the definitions to pin, asks for confirmation, and writes the lock file.
func (s toolReport) pin(cmd *cobra.Command, names []string, source string, o pinOptions) error {
	tools, err := s.toPin(names, source)
	if err != nil {
		return err
	}
	if err := s.checkReached(tools, names, source); err != nil {
		return err
	}
	out, now := cmd.OutOrStdout(), time.Now()
	who := cli.Operator(os.Getuid()).Login()
	lock := s.Lock
	var changes []agent.Status
	var gone, refused []string
	for _, t := range tools {
		if why := s.Refusal(t); why != "" {
			refused = append(refused, t.Tool.Name)
			fmt.Fprintf(out, "%s can't be pinned, and stays blocked: %s\n\n", t.Tool.Name, why)
			continue
		}
		if t.State == pins.Gone {
			gone = append(gone, t.Tool.Name)
		}
		if !t.State.Open() {
			continue
		}
		pin, err := pins.Make(t.Tool.Name, t.Tool.Source, t.Definition, who, now)
		if err != nil {
			return cli.CouldNot("%w", err)
		}
		lock = lock.With(pin)
		changes = append(changes, t)
	}
	s.printToPin(out, changes, len(names) > 0)
	var pruned []string
	if o.prune {
		pruned = s.Obsolete(tools)
		for _, name := range pruned {
			lock = lock.Without(name)
			fmt.Fprintf(out, "%s is not offered any more: its pin is forgotten\n\n", name)
		}
	}
	about := source
	if len(names) > 0 {
		about = tools[0].Tool.Source
	}
	s.printLeft(out, about)
	if len(gone) > 0 && !o.prune {
		fmt.Fprintf(out, "\n%s not offered any more: %s. --prune forgets it.\n", areCount(len(gone), "pinned tool"), strings.Join(gone, ", "))
	}
	if len(changes)+len(pruned) == 0 {
		if len(gone)+len(refused)+len(s.LeftOut) > 0 {
			fmt.Fprintln(out, "\nNothing was pinned: the offered tools have not changed.")
			return nil
		}
		fmt.Fprintln(out, "Nothing has to be pinned: no tool has changed.")
		return nil
	}
	if err := confirmPins(cmd, len(changes), len(pruned), o.yes); err != nil {
		return err
	}
	if err := s.write(lock); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s pinned in %s. A bot that runs takes it up within seconds.\n", cli.Count(len(changes), "definition"), pins.Beside(s.Path))
	return nil
}

// toPin returns the tools to which the command applies, including those that are already pinned.
func (s toolReport) toPin(names []string, source string) ([]agent.Status, error) {
	if len(names) == 0 {
		return s.chosen(source)
	}
	var out []agent.Status
	for _, name := range names {
		t, err := s.find(name)
		switch {
		case err != nil:
			return nil, err
		case t.State == pins.None:
			return nil, cli.Misused("%s needs no pin: it is compiled in, or the policy file itself describes it", t.Tool.Name)
		}
		out = append(out, t)
	}
	return out, nil
}

// checkReached returns an error if the command needs a source that is unreachable.
func (s toolReport) checkReached(tools []agent.Status, names []string, source string) error {
	for _, name := range s.downNames() {
		asked := len(names) == 0 && (source == "" || source == name) || slices.ContainsFunc(tools, func(t agent.Status) bool { return len(names) > 0 && t.Tool.Source == name })
		if asked {
			return cli.CouldNot("%s can't be reached, so nothing was pinned and every pin is unchanged: %s. Correct that, or pin other sources with --source", name, s.Down[name])
		}
	}
	return nil
}

// printToPin prints the tools to pin as a table, changed tools first. Then it prints the changes. If the parameter
// whole is true, printToPin also prints the definitions of new tools.
func (s toolReport) printToPin(out io.Writer, tools []agent.Status, whole bool) {
	if len(tools) == 0 {
		return
	}
	isNew := func(t agent.Status) bool { return t.Pinned == nil }
	isChanged := func(t agent.Status) bool { return t.Pinned != nil }
	tools = append(slices.DeleteFunc(slices.Clone(tools), isNew), slices.DeleteFunc(slices.Clone(tools), isChanged)...)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tRISK\tEFFECT\tSINCE IT WAS PINNED")
	for _, t := range tools {
		p, _ := s.Policy.Tool(t.Tool.Name, "")
		since := "new"
		if t.Pinned != nil {
			since = "CHANGED, " + cli.Count(len(pins.Diff(t.Pinned, t.Definition)), "line") + " below"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Tool.Name, p.Risk, t.Tool.Effect, since)
	}
	w.Flush()
	fmt.Fprintln(out)
	for _, t := range tools {
		switch {
		case t.Pinned != nil:
			fmt.Fprintf(out, "%s changed (- as pinned, + as it is now)\n", t.Tool.Name)
			printDiff(out, t)
		case whole:
			fmt.Fprintf(out, "%s is new, effect %s\n", t.Tool.Name, t.Tool.Effect)
			for _, c := range claims(t) {
				fmt.Fprintln(out, "  "+c)
			}
			fmt.Fprintln(out, indented(t.Definition))
		default:
			continue
		}
		fmt.Fprintln(out)
	}
	if !whole {
		fmt.Fprintln(out, "\"countersign tools show NAME\" prints a definition: its words are what the model follows.")
		fmt.Fprintln(out)
	}
}

func confirmPins(cmd *cobra.Command, changes, pruned int, yes bool) error {
	if yes {
		return nil
	}
	if !cli.IsTerminal(cmd.InOrStdin()) {
		return cli.Misused("nothing was pinned, because there is nobody to ask: read what is printed above, and run the command again with --yes")
	}
	return askToPin(cmd.InOrStdin(), cmd.OutOrStdout(), changes, pruned)
}

func askToPin(in io.Reader, out io.Writer, changes, pruned int) error {
	what := "Pin " + cli.Count(changes, "definition") + " as shown"
	if pruned > 0 {
		what += ", and forget " + cli.Count(pruned, "pin")
	}
	fmt.Fprint(out, what+"? Write pin: ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return cli.CouldNot("your answer can't be read: %w", err)
	}
	if strings.TrimSpace(answer) != "pin" {
		return cli.AnswerNo("nothing was pinned")
	}
	return nil
}

func (s toolReport) write(lock pins.Lock) error {
	err := policyfile.Misconfigured(s.Write(lock))
	if errors.Is(err, catalog.ErrLockChanged) {
		return cli.CouldNot("%s changed while you were reading, so nothing was written; run it again", pins.Beside(s.Path))
	}
	return err
}

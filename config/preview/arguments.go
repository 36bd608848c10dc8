package preview

import (
	"text/template"
	"text/template/parse"
)

// Arguments returns the arguments that a template reads, each with the fields that lead to its value. Arguments leaves
// out the fields of a value that with or range selects. The template must compile.
func Arguments(text string) (paths [][]string) {
	t, err := template.New("preview").Funcs(new(work).functions()).Parse(text)
	if err != nil {
		return nil
	}
	a := arguments{top: true}
	a.list(t.Root)
	return a.paths
}

// arguments collects the arguments that a template reads. The value top is false where the dot is not the object of all
// arguments.
type arguments struct {
	top   bool
	paths [][]string
}

func (a *arguments) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		a.node(n)
	}
}

func (a *arguments) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ActionNode:
		a.pipe(n.Pipe)
	case *parse.IfNode:
		a.pipe(n.Pipe)
		a.list(n.List)
		a.list(n.ElseList)
	case *parse.WithNode:
		a.body(&n.BranchNode)
	case *parse.RangeNode:
		a.body(&n.BranchNode)
	case *parse.PipeNode:
		a.pipe(n)
	case *parse.ChainNode:
		a.node(n.Node)
	case *parse.FieldNode:
		if a.top {
			a.paths = append(a.paths, n.Ident)
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			a.paths = append(a.paths, n.Ident[1:])
		}
	}
}

// body reads a part whose dot is another value. The part after else has the outer dot.
func (a *arguments) body(n *parse.BranchNode) {
	a.pipe(n.Pipe)
	outer := a.top
	a.top = false
	a.list(n.List)
	a.top = outer
	a.list(n.ElseList)
}

func (a *arguments) pipe(p *parse.PipeNode) {
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			a.node(arg)
		}
		a.byName(c.Args)
	}
}

// byName reads a call such as has . "note", which has the argument's name as text.
func (a *arguments) byName(call []parse.Node) {
	if len(call) < 3 {
		return
	}
	function, ok := call[0].(*parse.IdentifierNode)
	name, named := call[2].(*parse.StringNode)
	if !ok || !named || function.Ident != "has" && function.Ident != "get" && function.Ident != "index" {
		return
	}
	switch of := call[1].(type) {
	case *parse.DotNode:
		if a.top {
			a.paths = append(a.paths, []string{name.Text})
		}
	case *parse.VariableNode:
		if len(of.Ident) == 1 && of.Ident[0] == "$" {
			a.paths = append(a.paths, []string{name.Text})
		}
	}
}

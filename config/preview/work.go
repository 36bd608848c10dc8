package preview

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"

	"countersign/config/yamldoc"
)

// A running template can't be interrupted, and the model chose the arguments for its loops. Therefore the template's
// work is counted while the template runs. Each part of a loop's body counts in each iteration, and each byte that a
// function takes or returns counts. The limit is reached after at most about 30 ms. Above the limit, the run ends
// with an error.

// maxWork limits the work of one run, in units. A unit is four parts of a template or 64 bytes of text. A unit takes
// at most about a microsecond.
const maxWork = 30_000

const (
	bytesPerWork = 64
	perItem      = 48 // size in bytes that is added for each item of a list or an object, besides its text
)

// Some functions do more work than reading each byte once. heavy has the factor by which such a function's work is
// larger.
var heavy = map[string]int{"diff": 24, "patch": 3, "total": 3}

// The result of some functions can be much larger than the arguments. For each such function, makes has a function that
// computes the maximum size of the result, in bytes. The parameter named size is the size of the arguments.
var makes = map[string]func(args []reflect.Value, size int) int{
	"join": func(args []reflect.Value, size int) int { return size + itemCount(args[0])*args[1].Len() },
	"printf": func(args []reflect.Value, size int) int {
		return (strings.Count(args[0].String(), "%") + 1) * (size*maxEscape + 128)
	},
	"html":     func(_ []reflect.Value, size int) int { return size * maxEscape },
	"js":       func(_ []reflect.Value, size int) int { return size * maxEscape },
	"urlquery": func(_ []reflect.Value, size int) int { return size * maxEscape },
}

// maxEscape is the maximum number of bytes into which one byte is escaped, as in \u003c.
const maxEscape = 6

// itemCount returns the number of items in a list.
func itemCount(v reflect.Value) int {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice {
		return v.Len()
	}
	return 0
}

var errPreviewWork = errors.New("the template would take too long with these arguments")

// work counts the work of one run of a template.
type work struct{ done int }

func (w *work) spend(n int) error {
	if w.done += n; n < 0 || w.done > maxWork {
		return errPreviewWork
	}
	return nil
}

// spendName is the name of the function that counts work. countLoops inserts the calls of this function. The author of
// a template can't call it.
const spendName = "spend_work"

// functions returns the functions of a template. The work of the functions is counted for this run.
func (w *work) functions() template.FuncMap {
	all := template.FuncMap{spendName: func(n int) (string, error) { return "", w.spend(n) }}
	for name, f := range previewFuncs {
		all[name] = w.counted(name, f, max(heavy[name], 1))
	}
	for name, f := range plainFuncs {
		all[name] = w.counted(name, f, 1)
	}
	maps.Copy(all, basicFuncs)
	return all
}

// counted returns a function of the same type as f. The returned function spends work for its arguments and its
// result. If the result can be large, the work is spent before the call.
func (w *work) counted(name string, f any, times int) any {
	fn := reflect.ValueOf(f)
	failed := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(fn.Type().Out(0)), reflect.ValueOf(&err).Elem()}
	}
	return reflect.MakeFunc(fn.Type(), func(args []reflect.Value) []reflect.Value {
		size := 0
		for _, a := range args {
			if isAbsent(a) {
				return failed(errPreviewNothing)
			}
			size += sizeOf(a)
		}
		if err := w.spend(1 + size*times/bytesPerWork); err != nil {
			return failed(err)
		}
		if made := makes[name]; made != nil {
			if err := w.spend(made(args, size) / bytesPerWork); err != nil {
				return failed(err)
			}
		}
		call := fn.Call
		if fn.Type().IsVariadic() {
			call = fn.CallSlice
		}
		out := call(args)
		if err := w.spend(sizeOf(out[0]) / bytesPerWork); err != nil {
			return failed(err)
		}
		return out
	}).Interface()
}

// sizeOf estimates how many bytes a value has as text.
func sizeOf(v reflect.Value) int {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return 1
		}
		return sizeOf(v.Elem())
	case reflect.String:
		return v.Len()
	case reflect.Slice, reflect.Array:
		n := 2
		for i := range v.Len() {
			n += perItem + sizeOf(v.Index(i))
		}
		return n
	case reflect.Map:
		n := 2
		for name, item := range v.Seq2() {
			n += perItem + sizeOf(name) + sizeOf(item)
		}
		return n
	case reflect.Float64:
		if f := math.Abs(v.Float()); f >= 1e21 || (f != 0 && f < 1e-6) {
			return 340 // the number is written out in full
		}
	}
	return 8
}

// plainFuncs has the functions of text/template that make texts. These functions are limited and counted like all other
// functions.
var plainFuncs = template.FuncMap{
	"print":    func(v ...any) (string, error) { return fmt.Sprint(v...), nil },
	"println":  func(v ...any) (string, error) { return fmt.Sprintln(v...), nil },
	"printf":   printf,
	"html":     func(v ...any) (string, error) { return template.HTMLEscaper(v...), nil },
	"js":       func(v ...any) (string, error) { return template.JSEscaper(v...), nil },
	"urlquery": func(v ...any) (string, error) { return template.URLQueryEscaper(v...), nil },
}

// badVerb is how fmt begins the text of an operand that does not fit the format.
const badVerb = "%!"

// wide matches a format verb whose width or precision could make a long text.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*([0-9]{3}|\*)`)

func printf(format string, v ...any) (string, error) {
	if wide.MatchString(format) || utf8.RuneCountInString(format) > maxPreview {
		return "", errors.New("a width or precision has at most two digits")
	}
	plain := slices.Clone(v) // without texts, because a text may contain badVerb
	for i := range plain {
		switch plain[i].(type) {
		case string:
			plain[i] = ""
		case list:
			plain[i] = list{}
		case object:
			plain[i] = object{}
		}
	}
	if strings.Contains(fmt.Sprintf(strings.ReplaceAll(format, "%%", ""), plain...), badVerb) {
		return "", fmt.Errorf("the format %s does not fit the values", yamldoc.Quote(format))
	}
	return fmt.Sprintf(format, v...), nil
}

// countLoops inserts a call of spendName at the beginning of the template and of each loop's body. The call counts
// work. countLoops returns an error for constructs that a preview may not use.
func countLoops(t *template.Template) error {
	if len(t.Templates()) > 1 {
		return errOneTemplate
	}
	var l loops
	l.begin(t.Root)
	return l.fault
}

// errOneTemplate refuses templates that call each other, because recursion may have no end.
var errOneTemplate = errors.New("define, block and template can't be used in a preview, which is one sentence")

// loops adds the calls that count work to one template.
type loops struct{ fault error }

// begin inserts a call of spendName as the first node of a list. The call charges the work of the list's nodes to the
// budget.
func (l *loops) begin(list *parse.ListNode) {
	if list == nil {
		return
	}
	text := fmt.Sprintf("{{%s %d}}", spendName, 2+l.weigh(list)/4)
	spend := template.Must(template.New("").Funcs(template.FuncMap{spendName: func(int) string { return "" }}).Parse(text))
	list.Nodes = append([]parse.Node{spend.Root.Nodes[0]}, list.Nodes...)
}

// weigh counts the parts that run exactly once when a node runs. An inner loop counts its own parts.
func (l *loops) weigh(n parse.Node) int {
	switch n := n.(type) {
	case nil:
		return 0
	case *parse.ListNode:
		if n == nil {
			return 0
		}
		return 1 + l.weighAll(n.Nodes)
	case *parse.ActionNode:
		return 1 + l.weigh(n.Pipe)
	case *parse.PipeNode:
		if n == nil {
			return 0
		}
		w := 1 + len(n.Decl)
		for _, c := range n.Cmds {
			w += l.weigh(c)
		}
		return w
	case *parse.CommandNode:
		return 1 + l.weighAll(n.Args)
	case *parse.ChainNode:
		l.names(n.Field)
		return 1 + len(n.Field) + l.weigh(n.Node)
	case *parse.FieldNode:
		l.names(n.Ident)
		return 1 + len(n.Ident)
	case *parse.VariableNode:
		l.names(n.Ident)
		return 1 + len(n.Ident)
	case *parse.IdentifierNode:
		l.names([]string{n.Ident})
		return 1
	case *parse.TemplateNode:
		l.fault = errOneTemplate
	case *parse.IfNode:
		return 1 + l.weigh(n.Pipe) + l.weigh(n.List) + l.weigh(n.ElseList)
	case *parse.WithNode:
		return 1 + l.weigh(n.Pipe) + l.weigh(n.List) + l.weigh(n.ElseList)
	case *parse.RangeNode:
		w := 1 + l.weigh(n.Pipe) + l.weigh(n.ElseList)
		l.begin(n.List)
		return w
	}
	return 1
}

func (l *loops) weighAll(nodes []parse.Node) int {
	w := 0
	for _, n := range nodes {
		w += l.weigh(n)
	}
	return w
}

// The method refuses names of methods and functions with uncounted work.
func (l *loops) names(names []string) {
	for _, name := range names {
		switch name {
		case spendName, "String", "MarshalJSON":
			l.fault = fmt.Errorf("%s can't be used in a preview", name)
		}
	}
}

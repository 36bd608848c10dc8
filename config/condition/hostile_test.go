//go:build linux

package condition

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"

	"countersign/approvers"
)

// doubled returns an expression that contains a value twice, n levels deep. As text, the value of the expression is 2^n
// times as long as the given value.
func doubled(value, by string, n int) string {
	return "[" + value + "]" + strings.Repeat(".map(x, "+by+")", n)
}

// hostileRules are conditions that would take gigabytes or minutes with arguments of 60 KB if their work were not
// counted. Nobody writes such a condition on purpose, but a hostile model can exploit a condition that was written
// carelessly.
var hostileRules = []string{
	// CEL alone would count this work only after the work is done.
	`args.note.split("").join(args.note) != ""`,
	`size(args.note.replace("a", args.note)) > 5`,
	`size(args.note.replace("", args.note)) > 5`,
	`size(args.note.replace("a", args.note, 60000)) > 5`,
	`size(args.l.map(x, args.note).join()) > 5`,
	`size(args.l.map(x, args.note).join(args.note)) > 5`,
	`size("%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s".format(args.l.map(x, args.note))) > 5`,
	`size("%s".format([args.l.map(x, args.note)])) > 5`,
	`size(args.formats.format(args.l.map(x, args.note))) > 5`,
	`size(args.formats.format(args.l)) > 5`,
	`size(args.note.split("").map(x, args.note).join("")) > 5`,
	`args.note.split("").exists(x, args.note.split("").exists(y, x + y == "zz"))`,
	`args.note.split("").map(x, args.note.split("")).size() > 100000`,
	`args.note.indexOf(args.half + "b") == 5`,
	`args.note.lastIndexOf("b" + args.half) == 5`,
	`args.note.reverse().upperAscii().lowerAscii().replace("a", args.note).trim().size() > 5`,
	`strings.quote(args.note.replace("a", args.note)).size() > 5`,
	`args.note.matches(args.pattern)`,
	`args.note.matches(args.nested)`,
	`args.note.matches("(" + args.pattern + ")")`,
	`args.l.exists(x, args.note.matches("(.{900}|b{50})*c"))`,
	`args.l.exists(x, args.note.matches("(a|b|c|d)*z"))`,
	`args.l.exists(x, now.getHours(args.zone) > 30)`,
	`args.words.exists(x, args.words.exists(y, args.words.exists(z, x + y + z == "q")))`,
	// CEL alone would not count this work, because CEL has no estimate for the called function.
	doubled("args.note", "x + x", 40) + `.exists(x, size(x) > 5)`,
	doubled("args.l", "x + x", 40) + `.exists(x, size(x) > 5)`,
	doubled("args.note", "x.replace('a', x)", 5) + `.exists(x, size(x) > 5)`,
	doubled("args.note", "args.note + x + x + x + x + x + x + x + x + x", 20) + `.exists(x, size(x) > 5)`,
	`args.m.map(k, args.note + args.note).size() > 5 && ` + doubled("args.m.a", "x + x", 40) + ` != []`,
	// lists that contain the same list twice, at many levels
	doubled("args.l", "dyn([x, x])", 40) + ` == ` + doubled("args.l", "dyn([x, x])", 40),
	doubled("dyn(1)", "dyn([x, x])", 60) + ` == ` + doubled("dyn(1)", "dyn([x, x])", 60),
	doubled("dyn(1)", "dyn({'a': x, 'b': x})", 60) + ` == ` + doubled("dyn(1)", "dyn({'a': x, 'b': x})", 60),
	doubled("dyn(1)", "dyn([x, x])", 60) + ` in ` + doubled("dyn(2)", "dyn([x, x])", 61),
	`size("%s".format(` + doubled("dyn(1)", "dyn([x, x])", 60) + `)) > 5`,
	`size("%s".format(` + doubled("dyn(1)", "dyn({'a': x, 'b': x})", 60) + `)) > 5`,
	doubled("dyn('a')", "dyn([x, x])", 60) + `.join() == "a"`,
	doubled("dyn([1])", "dyn([x, x])", 60) + `.exists(x, args.l[x] == 1)`,
	doubled("dyn([1])", "dyn([x, x])", 60) + `.exists(x, args[x] == 1)`,
	doubled("dyn([1])", "dyn([x, x])", 60) + `.exists(x, {'a': 1}[x] == 1)`,
	doubled("dyn([1])", "dyn([x, x])", 60) + `.exists(x, x in args)`,
	doubled("dyn([1])", "dyn([x, x])", 60) + `.exists(x, {x: 1} == {x: 2})`,
	doubled("dyn([1])", "dyn([x, x])", 60) + `.exists(x, x < x)`,
	doubled("dyn([1])", "dyn([x, x])", 60) + `.exists(x, x)`,
	`size("%d".format(` + doubled("dyn(1)", "dyn([x, x])", 60) + `)) > 5`,
	doubled("[[]]", "x + x", 60) + ` == ` + doubled("[[]]", "x + x", 60),
	// long conditions
	strings.Repeat("args.note + ", 200) + `"" == ""`,
	"[" + strings.TrimSuffix(strings.Repeat("args.l, ", 500), ", ") + "] == [" + strings.TrimSuffix(strings.Repeat("args.l, ", 500), ", ")[:0] + "]",
	"size([" + strings.TrimSuffix(strings.Repeat("args.note, ", 350), ", ") + "].join()) > 5",
	strings.TrimSuffix(strings.Repeat("args.l == args.l2 && ", 190), " && "),
	strings.TrimSuffix(strings.Repeat("size(args.note) > 5 && ", 170), " && "),
	strings.TrimSuffix(strings.Repeat("args.note.contains('ab') || ", 140), " || "),
	strings.TrimSuffix(strings.Repeat("bytes(args.note) == b'a' || ", 140), " || "),
	strings.TrimSuffix(strings.Repeat("args.note.reverse() == '' || ", 140), " || "),
	`size("` + strings.Repeat("%.99f", 600) + `".format(args.l.map(x, 1e308))) > 5`,
}

// hostileArgs returns arguments of about 60 KB, each large in a different way.
func hostileArgs() []map[string]any {
	base := func() map[string]any {
		return map[string]any{
			"note": "", "half": "", "l": []any{1.0}, "l2": []any{1.0}, "m": map[string]any{"a": "a"}, "formats": "", "pattern": "a", "nested": "((a{30}){30}){30}", "zone": "Europe/Berlin", "words": []any{},
		}
	}
	with := func(name string, v any, more ...any) map[string]any {
		out := base()
		out[name] = v
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1]
		}
		return out
	}
	of := func(v any, n int) []any { return slices.Repeat([]any{v}, n) }
	object := map[string]any{}
	for i := range 5000 {
		object[fmt.Sprintf("k%d", i)] = 1.0
	}
	note := strings.Repeat("a", 60<<10)
	return []map[string]any{
		with("note", note),
		with("note", note[:30<<10], "half", note[:15<<10], "l", of(1.0, 7000)),
		with("note", note[:30<<10], "l", of("", 10000)),
		with("note", note[:30<<10], "formats", strings.Repeat("%s", 10<<10), "l", of("a", 2500)),
		with("l", of(1.0, 15<<10), "l2", of(1.0, 15<<10)),
		with("l", of("a", 15<<10), "words", of("b", 1000)),
		with("m", object, "note", note[:10<<10]),
		with("note", note[:30<<10], "pattern", strings.Repeat(".{1000}", 4<<10)),
		with("note", note[:30<<10], "pattern", strings.Repeat("(a|b{999})*", 20)),
		with("note", note[:60<<10], "pattern", strings.Repeat(".{1000}", 30)+"b"),
	}
}

// The constant most is the greatest total number of bytes that one evaluation may allocate. The total is larger than
// the evaluation's memory at any one time.
const most = 64 << 20

// TestHostileRules checks that every rule ends and allocates at most 64 MiB with the largest arguments. A separate
// process with a limit of 3 GiB tries the rules. So a failure does not use up the machine's memory.
func TestHostileRules(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run=^TestHostileRulesChild$", "-test.v")
	child.Env = append(os.Environ(), "HOSTILE_RULES=1", "GOMAXPROCS=2")
	kill := time.AfterFunc(3*time.Minute, func() { _ = child.Process.Kill() })
	defer kill.Stop()
	out, err := child.CombinedOutput()
	lines := strings.Split(string(out), "\n")
	if err != nil {
		begun := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "fatal error:") })
		t.Fatalf("%v: %s", err, strings.Join(lines[max(0, max(begun, 0)-5):min(len(lines), max(begun, 30)+3)], "\n"))
	}
	for _, l := range lines {
		if strings.Contains(l, "largest") {
			t.Log(l)
		}
	}
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// TestHostileRulesChild runs in the process that tries the rules.
func TestHostileRulesChild(t *testing.T) {
	if os.Getenv("HOSTILE_RULES") == "" {
		t.Skip("TestHostileRules runs it in a process of its own")
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 3 << 30, Max: 3 << 30}); err != nil {
		t.Fatal(err)
	}
	env, err := conditions()
	if err != nil {
		t.Fatal(err)
	}
	args, over := hostileArgs(), 0
	var largest uint64
	var slowest time.Duration
	for _, rule := range hostileRules {
		fmt.Printf("trying %.150s\n", rule)
		compiled, issues := env.Compile(rule)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", rule, issues.Err())
		}
		p, err := program(env, compiled)
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		failed := 0
		for i, a := range args {
			before, begun := allocated(), time.Now()
			_, err := evaluate(p, approvers.Facts{Args: a, Now: begun})
			if err != nil {
				failed++
				_ = err.Error()
			}
			took, made := time.Since(begun), allocated()-before
			largest, slowest = max(largest, made), max(slowest, took)
			if made > most {
				t.Errorf("%.150s over arguments %d took %d MiB in %s: %v", rule, i, made>>20, took, err)
			}
		}
		if failed > 0 {
			over++
		}
	}
	fmt.Printf("%d rules, %d of them over a limit with some arguments; largest %.1f MiB, slowest %s\n", len(hostileRules), over, float64(largest)/(1<<20), slowest)
}

// everyFunction lists conditions that call each function, as a policy would. Some of these conditions have errors.
var everyFunction = []string{
	`args.n + 1.0 > 5.0`, `args.s + "b" == "ab"`, `args.l + [1.0] == [1.0, 2.0, 1.0]`, `args.n + args.n == 4.0`, `args.s + args.s == "aa"`, `args.s + args.n == "a"`,
	`b"a" + bytes(args.s) == b"aa"`, `now + duration("1h") > now`, `args.n - 1.0 < args.n * 2.0`, `args.n / 2.0 >= 1.0 && args.n / 2.0 <= 1.0`, `-args.n < 0.0`, `size(args.l) % 2 == 0`,
	`args.l == [1.0, 2.0]`, `args.l != [1.0, 2.0]`, `args.m == {"a": "b"}`, `[args.l, args.l] == [args.l, args.l]`, `args.l == args.s`, `args.missing == 1`, `!(args.s == "a")`,
	`args.n in args.l`, `args.s in args.m`, `args.s in ["a", "b"]`, `args.s in [args.s]`, `[args.s] in [[args.s]]`, `args.n in args.s`,
	`args.s.contains("a")`, `args.s.startsWith(args.s)`, `args.s.endsWith("b")`, `args.n.contains("a")`, `args.s.matches("^a$")`, `args.s.matches(args.s)`, `args.n.matches("a")`,
	`args.s.matches("(" + args.s)`, `args.s.matches("(a{5}){5}b")`, `matches(args.s, "a+")`, `size(args.s) == 1 && args.s.size() == 1 && size(args.m) == 1 && size(args.l) == 2`, `size(args.n) == 1`,
	`args.s.charAt(0) == "a"`, `args.s.charAt(9) == "a"`, `"%s %d %.2f".format([args.s, 5, args.n]) == "a 5 2.00"`, `"%d".format([args.s]) == ""`,
	`"%s".format([args.l]) == "[1, 2]"`, `args.s.indexOf("a") == 0`, `args.s.indexOf("a", 1) == -1`, `args.s.lastIndexOf("a") == 0`, `args.s.lastIndexOf("a", 0) == 0`,
	`["a", args.s].join() == "aa"`, `["a", args.s].join("-") == "a-a"`, `args.l.join("-") == "a"`, `args.s.lowerAscii() == "a"`, `args.s.upperAscii() == "A"`, `args.s.reverse() == "a"`,
	`args.s.replace("a", "b") == "b"`, `args.s.replace("a", "b", 0) == "a"`, `args.s.replace("a", args.n) == ""`, `args.s.split("") == ["a"]`, `args.s.split("a", 1) == ["a"]`, `strings.quote(args.s) == "\"a\""`,
	`args.s.substring(1) == ""`, `args.s.substring(0, 1) == "a"`, `args.s.substring(5) == ""`, `args.s.trim() == "a"`, `string(args.n) == "2"`, `string(args.l) == ""`, `int(args.n) == 2`, `uint(args.n) == 2u`,
	`double("2") == args.n`, `double(args.s) == 2.0`, `bool("true")`, `bytes(args.s) == b"a"`, `string(b"a") == args.s`, `timestamp(args.t) < now`, `duration("5m") < duration(args.s)`, `type(args.n) == double`, `dyn(args.n) == 2.0`,
	`now.getHours() > 5`, `now.getHours(args.zone) > 5`, `now.getHours("Europe/Berlin") > 5`, `now.getHours("+02:00") > 5`, `now.getDayOfWeek("UTC") == 1`, `now.getFullYear() > 2000 && now.getMonth() == 2 && now.getDate() == 31`,
	`now.getHours(args.s) > 5`, `args.l.map(x, x * 2.0) == [2.0, 4.0]`, `args.l.filter(x, x > 1.0) == [2.0]`, `args.m.exists(k, args.m[k] == "b")`, `args.l.all(x, x in args.l)`, `args.l.exists_one(x, x == 1.0)`,
	`args.l.map(x, x > 1.0, string(x)).join() == "2"`, `[[args.n]].map(x, x + x)[0] == [2.0, 2.0]`, `{"a": args.n}.a == 2.0`, `args.n < args.s`, `args.s < "b" && args.s <= "a" && args.s >= "a" && "b" > args.s`,
	`(args.n > 1.0 ? args.s : args.t) == "a"`, `args.l[0] == 1.0 && args["s"] == "a"`, `args.l[9] == 1.0`, `args.n > 1.0 || args.missing`, `args.missing || args.n > 1.0`, `has(args.m.a) && !has(args.m.b)`,
}

// TestPaidIsTheSame checks that counting the work of a condition does not change its result.
func TestPaidIsTheSame(t *testing.T) {
	env, err := conditions()
	if err != nil {
		t.Fatal(err)
	}
	limits, err := paid(env)
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	facts := approvers.Facts{
		Args: map[string]any{"n": 2.0, "s": "a", "l": []any{1.0, 2.0}, "m": map[string]any{"a": "b"}, "t": "2026-01-01T00:00:00Z", "zone": "Europe/Berlin"},
		Now:  time.Date(2026, 3, 31, 17, 30, 0, 0, time.UTC),
	}
	for _, text := range everyFunction {
		compiled, issues := env.Compile(text)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", text, issues.Err())
		}
		ast.PostOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
			if e.Kind() == ast.CallKind {
				called[e.AsCall().FunctionName()] = true
			}
		}))
		plain, err := env.Program(compiled, cel.EvalOptions(cel.OptOptimize), zones)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		counting, err := env.Program(compiled, append(limits, cel.EvalOptions(cel.OptOptimize), zones)...)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want, wantErr := evaluate(plain, facts)
		got, gotErr := evaluate(counting, facts)
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s: %v, %v, and without counting %v, %v", text, got, gotErr, want, wantErr)
		}
	}
	for name := range env.Functions() {
		known := priceOf(name) != nil || slices.Contains(unpriced, name) || slices.Contains(timeParts, name)
		if !known {
			t.Errorf("nothing says what %s costs", name)
		}
		if !called[name] && !slices.Contains(unpriced, name) && !slices.Contains([]string{"getDayOfMonth", "getDayOfYear", "getMilliseconds", "getMinutes", "getSeconds"}, name) {
			t.Errorf("no condition here calls %s", name)
		}
	}
}

// TestLongListsAreFine checks that ordinary rules stay within the limits, with lists and texts that are long for a
// person.
func TestLongListsAreFine(t *testing.T) {
	var items, people, words []any
	for i := range 1500 {
		items = append(items, map[string]any{"sku": fmt.Sprintf("SKU-%d", i), "price": float64(i % 50)})
		people = append(people, fmt.Sprintf("person%d@example.com", i))
		words = append(words, "word")
	}
	args := map[string]any{"items": items, "to": people, "words": words, "note": strings.Repeat("word ", 5000)}
	for text, want := range map[string]bool{
		`args.items.exists(i, i.price > 100.0)`:                                                     false,
		`args.to.exists(p, !p.endsWith("@example.com"))`:                                            false,
		`args.to.exists(p, p.matches(".*@(evil|bad)[.]example"))`:                                   false,
		`args.items.map(i, i.sku).join(",").contains("SKU-1499")`:                                   true,
		`args.note.split(" ").exists(w, w.lowerAscii() == "secret")`:                                false,
		`args.note.lowerAscii().replace(" ", "").contains("wordword")`:                              true,
		`args.items.filter(i, i.price > 48.0).size() > 5`:                                           true,
		`"%s has %d".format([args.note, size(args.items)]).endsWith("1500")`:                        true,
		`args.note.matches("(?i)\\b(iban|account number)\\b")`:                                      false,
		`args.words.join(" ") in ["a"] || args.words == args.words.map(w, w)`:                       true,
		`args.to.map(p, p.substring(p.indexOf("@"))).all(d, d in ["@example.com", "@example.org"])`: true,
	} {
		matched, err := parsed(t, text).Tools[0].Rules[0].When.Eval(approvers.Facts{Args: args})
		if err != nil || matched != want {
			t.Errorf("%s: %v, %v", text, matched, err)
		}
	}
}

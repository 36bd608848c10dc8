package preview

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"text/template"
	"unicode/utf8"

	"countersign/config/yamldoc"
)

// maxPreview is the maximum length of a preview, in characters. A preview is one sentence on a card, above the exact
// arguments.
const maxPreview = 600

var (
	errPreviewLong    = fmt.Errorf("the preview is longer than %d characters", maxPreview)
	errPreviewLines   = errors.New("the preview has more than one line, because an argument contains a line break")
	errPreviewEmpty   = errors.New("the preview is empty")
	errPreviewNothing = errors.New("the preview uses something that the call does not have")
)

// Compile compiles a template, and returns the function render. render returns the preview of a call with the arguments
// args. An error of render tells the approver why there is no preview. The approver then reads the arguments instead.
// If the template is wrong, message says what is wrong, and hint says what to write instead.
func Compile(text string) (render func(args map[string]any) (string, error), message, hint string) {
	text = strings.TrimSpace(text)
	switch {
	case utf8.RuneCountInString(text) > maxPreview:
		return nil, fmt.Sprintf("the template is longer than %d characters", maxPreview), "make it one sentence: the exact arguments are shown below it"
	case strings.ContainsAny(text, "\n\r"):
		return nil, "the template has more than one line", "write it on one line, or begin it with >- instead of |"
	}
	t, err := template.New("preview").Option("missingkey=error").Funcs(new(work).functions()).Parse(text)
	if err == nil {
		err = countLoops(t)
	}
	if err != nil {
		message, hint = explainTemplate(err)
		return nil, message, hint
	}
	runners := &sync.Pool{New: func() any {
		r := &runner{}
		r.template = template.Must(t.Clone()).Funcs(r.work.functions())
		return r
	}}
	return func(args map[string]any) (string, error) {
		r := runners.Get().(*runner)
		defer runners.Put(r)
		return r.render(args)
	}, "", ""
}

// runner is a copy of a template. The functions of the copy count the work of one run at a time.
type runner struct {
	template *template.Template
	work     work
}

func (r *runner) render(args map[string]any) (string, error) {
	r.work = work{}
	out := &bounded{left: maxPreview * utf8.UTFMax}
	if err := r.template.Execute(out, readableArgs(args)); err != nil {
		return "", previewFault(err)
	}
	text := strings.TrimSpace(out.String())
	switch {
	case text == "":
		return "", errPreviewEmpty
	case strings.Contains(text, absentText):
		return "", errPreviewNothing
	case utf8.RuneCountInString(text) > maxPreview:
		return "", errPreviewLong
	case strings.ContainsAny(text, "\n\r\u0085\u2028\u2029\v\f"):
		return "", errPreviewLines
	}
	return text, nil
}

// bounded stops a template that writes too much.
type bounded struct {
	strings.Builder
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errPreviewLong
	}
	return b.Builder.Write(p)
}

var _ io.Writer = (*bounded)(nil)

var (
	noKey    = regexp.MustCompile(`map has no entry for key "([^"]*)"`)
	calling  = regexp.MustCompile(`error calling (\w+): (.*)$`)
	noFunc   = regexp.MustCompile(`function "([^"]*)" not defined`)
	location = regexp.MustCompile(`^template: preview:\d+(:\d+)?: (executing "preview" at <[^>]*>: )?`)
)

// previewFault returns the reason why there is no preview, for the approver.
func previewFault(err error) error {
	for _, own := range []error{errPreviewLong, errPreviewWork, errPreviewNothing} {
		if errors.Is(err, own) {
			return own
		}
	}
	said := err.Error()
	if m := noKey.FindStringSubmatch(said); m != nil {
		return fmt.Errorf("the call has no argument %s", m[1])
	}
	if m := calling.FindStringSubmatch(said); m != nil {
		return fmt.Errorf("%s: %s", m[1], m[2])
	}
	return errors.New(cut(location.ReplaceAllString(said, ""), 200))
}

// explainTemplate translates the error of a template into a message that tells the policy's author what to write.
func explainTemplate(err error) (message, hint string) {
	said := location.ReplaceAllString(err.Error(), "")
	if errors.Is(err, errOneTemplate) {
		return said, "write one sentence"
	}
	if m := noFunc.FindStringSubmatch(said); m != nil {
		argument := "write {{." + m[1] + "}} if the argument is meant"
		if hint := yamldoc.DidYouMean(m[1], previewFuncNames()); hint != "" {
			return "there is no function " + m[1], hint + " Or " + argument
		}
		return "there is no function " + m[1], argument + "; the functions are " + strings.Join(previewFuncNames(), ", ")
	}
	if strings.Contains(said, "unclosed action") || strings.Contains(said, "unterminated") {
		return "a {{ is never closed", "add }}"
	}
	if strings.Contains(said, "unexpected EOF") {
		return "an {{if}}, {{with}} or {{range}} has no end", "add {{end}}"
	}
	return "is not a valid template: " + said, `write a template such as "Ship {{.order_id}} to {{.address}}"`
}

package httptool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"countersign/agent"
	"countersign/agent/egress"
	"countersign/agent/jsonobject"
	"countersign/internal/tracing"
)

// maxAddress is the maximum length of a URL, in bytes. Many servers refuse longer URLs.
const maxAddress = 8 << 10

// bodyKind is the format of a request's body.
type bodyKind string

const (
	noBody   bodyKind = ""
	jsonBody bodyKind = "json"
	formBody bodyKind = "form"
	textBody bodyKind = "text"
)

// body describes which arguments form a request's body, and the format of the body.
type body struct {
	kind bodyKind
	arg  string // the argument that is the whole body; empty: the body has all arguments that have no other place
	mime string
}

// request builds a call's request. An error is for the model, and means that nothing was sent.
func (o *operation) request(ctx context.Context, in agent.Invocation) (*http.Request, error) {
	list, err := members(in.Args)
	if err != nil {
		return nil, err
	}
	args := call{}
	for _, m := range list {
		args[m.Name] = m.Value
	}
	address, err := o.address(args)
	if err != nil {
		return nil, err
	}
	content, mime, err := o.content(list, args)
	if err != nil {
		return nil, err
	}
	var reader io.Reader // stays nil without a body, because an empty reader would send a length
	if content != nil {
		reader = bytes.NewReader(content)
	}
	req, err := http.NewRequestWithContext(ctx, o.method, address, reader)
	if err != nil {
		return nil, fmt.Errorf("the arguments don't give a valid URL")
	}
	req.Header.Set("User-Agent", "countersign")
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	if mime != "" {
		req.Header.Set("Content-Type", mime)
	}
	if o.key != "" {
		req.Header.Set(o.key, in.Key)
	}
	tracing.Inject(ctx, tracing.Header(req.Header))
	return req, o.header(req, args)
}

// address returns the URL. address also checks that the URL's host is the declared host.
func (o *operation) address(args call) (string, error) {
	path, err := args.path(o.path)
	if err != nil {
		return "", err
	}
	query, err := args.query(o.query)
	if err != nil {
		return "", err
	}
	address := o.base + path
	if len(query) > 0 {
		address += "?" + strings.Join(query, "&")
	}
	if len(address) > maxAddress {
		return "", fmt.Errorf("the URL would have %d bytes, and the limit is %d", len(address), maxAddress)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != o.host.Scheme || u.Host != o.host.Host {
		return "", fmt.Errorf("the arguments don't give a valid URL")
	}
	if err := egress.CheckURL(u); err != nil {
		return "", err
	}
	return address, nil
}

// header sets the headers. Each header is set as a separate field, so an argument in one header can't change another
// header.
func (o *operation) header(req *http.Request, args call) error {
	for _, f := range o.headers {
		text, ok, err := args.header(f)
		if err != nil {
			return err
		}
		if ok {
			req.Header.Set(f.name, text)
		}
	}
	var cookies []string
	if own := req.Header.Get("Cookie"); own != "" {
		cookies = append(cookies, own)
	}
	for _, f := range o.cookies {
		text, ok, err := args.cookie(f)
		if err != nil {
			return err
		}
		if ok {
			cookies = append(cookies, text)
		}
	}
	if len(cookies) > 0 {
		req.Header.Set("Cookie", strings.Join(cookies, "; "))
	}
	return nil
}

// content encodes the body from the arguments' bytes.
func (o *operation) content(list jsonobject.Object, args call) (content []byte, mime string, err error) {
	b := o.body
	if b.kind == noBody {
		return nil, "", nil
	}
	if b.arg != "" {
		raw, given := args[b.arg]
		switch {
		case !given:
			return nil, "", nil
		case b.kind == jsonBody:
			return raw, b.mime, nil
		case b.kind == textBody:
			s, err := args.text(b.arg, "body")
			return []byte(s), b.mime, err
		}
		if list, err = members(raw); err != nil {
			return nil, "", fmt.Errorf("%s must be an object", b.arg)
		}
	}
	rest := list
	if b.arg == "" {
		rest = nil
		for _, m := range list {
			if !o.placed[m.Name] {
				rest = append(rest, m)
			}
		}
	}
	if b.kind == jsonBody {
		return rest.Bytes(), b.mime, nil
	}
	content, err = form(rest)
	return content, b.mime, err
}

// form encodes members as a web form. A list becomes repeated fields with the same name.
func form(list jsonobject.Object) ([]byte, error) {
	var out []string
	fields := call{}
	for _, m := range list {
		if absent(m.Value) {
			continue
		}
		fields[m.Name] = m.Value
		p := piece{arg: m.Name, style: style{kind: "form", explode: true}}
		if m.Value[0] == '{' {
			p.style = style{} // nested lists and objects are refused, because they have no standard notation
		}
		parts, err := fields.parts(p, "form")
		if err != nil {
			return nil, err
		}
		for _, x := range parts {
			out = append(out, url.QueryEscape(m.Name)+"="+url.QueryEscape(x.value))
		}
	}
	return []byte(strings.Join(out, "&")), nil
}

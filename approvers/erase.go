package approvers

import "encoding/json"

// erasedArgs replaces erased arguments.
var erasedArgs = json.RawMessage("{}")

// Erase removes the texts of people and the model from a request. The decisions, their times and digests stay.
func (r Request) Erase() Request {
	r.Args, r.Preview, r.PreviewFault, r.Reason, r.Facts.Quote, r.Facts.MessageEdit = erasedArgs, "", "", "", "", nil
	if r.ToolPreview != nil {
		f := *r.ToolPreview
		f.Text, f.Fault, f.No = "", "", ""
		r.ToolPreview = &f
	}
	if r.Unreached != nil {
		u := *r.Unreached
		u.Cause = "" // Slack may quote the refused text
		r.Unreached = &u
	}
	r.Decisions = each(r.Decisions, func(d *Decision) { d.Reason = "" })
	r.Edits = each(r.Edits, func(e *Edit) { e.Before, e.After, e.Reason = erasedArgs, erasedArgs, "" })
	r.Remarks = each(r.Remarks, func(m *Remark) { m.Text, m.MessageEdit = "", nil })
	return r
}

// Erased reports whether the texts were removed. After the removal, the digest does not match the arguments. There is
// one exception: for a call without arguments ({}), Erased always returns false.
func (r Request) Erased() bool { return r.Digest != Digest(r.Execution, r.Tool, r.ToolHash, r.Args) }

// Erase removes the arguments and the result from an execution. The digest of the execution stays.
func (e Execution) Erase() Execution {
	e.Args, e.Result = erasedArgs, ""
	return e
}

// Erase removes the question and the answer from an elicitation. The person and the time of the answer stay.
func (q Elicitation) Erase() Elicitation {
	q.From, q.Text, q.Schema, q.URL, q.Values = "", "", nil, "", nil
	return q
}

// each returns a copy of the list, after the function change was applied to every element of the copy.
func each[T any](list []T, change func(*T)) []T {
	if list == nil {
		return nil
	}
	out := append([]T{}, list...)
	for i := range out {
		change(&out[i])
	}
	return out
}

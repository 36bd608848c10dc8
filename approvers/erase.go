package approvers

import "encoding/json"

// erasedArgs stand where arguments were.
var erasedArgs = json.RawMessage("{}")

// Erase takes out of a request what people and the model wrote. Who decided what, when, and over which digest stays.
func (r Request) Erase() Request {
	r.Args, r.Preview, r.PreviewFault, r.Reason, r.Facts.Quote, r.Facts.Reworded = erasedArgs, "", "", "", "", nil
	if r.Forecast != nil {
		f := *r.Forecast
		f.Text, f.Fault = "", ""
		r.Forecast = &f
	}
	r.Decisions = each(r.Decisions, func(d *Decision) { d.Reason = "" })
	r.Edits = each(r.Edits, func(e *Edit) { e.Before, e.After, e.Reason = erasedArgs, erasedArgs, "" })
	r.Remarks = each(r.Remarks, func(m *Remark) { m.Text = "" })
	return r
}

// Erased reports whether what people and the model wrote was taken out: the arguments are not those that the digest is over.
func (r Request) Erased() bool { return r.Digest != Digest(r.Execution, r.Tool, r.ToolHash, r.Args) }

// Erase takes out of an execution what was run and what came of it. Its digest stays.
func (e Execution) Erase() Execution {
	e.Args, e.Result = erasedArgs, ""
	return e
}

// Erase takes out of an elicitation what was asked and answered. Who answered, and when, stays.
func (q Elicitation) Erase() Elicitation {
	q.Text, q.Schema, q.URL, q.Values = "", nil, "", nil
	return q
}

// each changes the elements of a copy.
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

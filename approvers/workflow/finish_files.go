package workflow

import (
	"encoding/json"
	"mime"
	"strconv"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/store"
)

// File is something that a run brought back beside what the model is told.
type File struct {
	Name  string // as people should read it
	Type  string // the media type
	Data  []byte
	Whole bool // it is the whole of the result, of which the model is given the beginning
}

// CardResult is how many characters of a result a card shows.
const CardResult = 600

// cutOnCard reports whether a card shows a part of a result only.
func cutOnCard(result string) bool { return utf8.RuneCountInString(result) > CardResult }

// WholeName is what the file with the whole of a tool's result is called.
func WholeName(tool, result string) string {
	if json.Valid([]byte(result)) {
		return tool + "-result.json"
	}
	return tool + "-result.txt"
}

// named are files as they are stored, each with its hash. It is done before the transaction, which may run more than
// once.
func named(execution string, files []File) []store.File {
	var out []store.File
	for i, f := range files {
		if _, _, err := mime.ParseMediaType(f.Type); err != nil {
			f.Type = "application/octet-stream"
		}
		out = append(out, store.File{Execution: execution, Index: i, Name: f.Name, Type: f.Type, Whole: f.Whole}.Of(f.Data))
	}
	return out
}

// keepFiles writes what a run brought back, and has it shown to the people in its thread. A result that its card can't
// show whole is one of them.
func (t *tx) keepFiles(e approvers.Execution, rows []store.File, files []File) error {
	for i, row := range rows {
		row.At = t.now
		if err := t.PutFile(row, files[i].Data); err != nil {
			return err
		}
		facts := map[string]string{"execution": e.ID, "file": strconv.Itoa(i), "type": row.Type, "bytes": strconv.Itoa(row.Size)}
		if row.Whole {
			facts["whole"] = "result"
		}
		if err := t.audit(e.Chain(), approvers.AuditAttached, "", facts, map[string]string{"name": row.Name, "sha256": row.Hash}); err != nil {
			return err
		}
		if err := t.newOutboxMessage(store.OutboxMessage{Kind: store.OutboxAttachment, Ref: e.ID, Step: i, To: toConversation + e.Conversation}); err != nil {
			return err
		}
	}
	return nil
}

// viewFile reads a file that a run brought back, with its bytes.
func (m *ViewModel) viewFile(r store.Reader, execution string, index int) error {
	e, err := r.Execution(execution)
	if err != nil {
		return err
	}
	call, err := r.Call(e.Call)
	if err != nil {
		return err
	}
	mask(m.Policy, nil, &call)
	m.Execution, m.Call = &e, &call
	files, err := r.Files(execution)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Index != index {
			continue
		}
		m.File = &f
		if m.Data, err = r.FileData(execution, index); err != nil {
			return err
		}
		return m.viewChannel(r, e.Turn)
	}
	return store.ErrNotFound // it was erased
}

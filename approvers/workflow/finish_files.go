package workflow

import (
	"encoding/json"
	"mime"
	"strconv"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/store"
)

// File is a part of a run's result that is kept beside the text for the model.
type File struct {
	Name  string // as people should read it
	Type  string // the media type
	Data  []byte
	Whole bool // it holds the whole result; the model gets only its beginning
}

// CardResult is the number of a result's characters that a card shows.
const CardResult = 600

// cutOnCard reports whether a result is too long for its card.
func cutOnCard(result string) bool { return utf8.RuneCountInString(result) > CardResult }

// WholeName returns the name of the file that holds a tool's whole result.
func WholeName(tool, result string) string {
	if json.Valid([]byte(result)) {
		return tool + "-result.json"
	}
	return tool + "-result.txt"
}

// named converts files to rows with hashes. It runs before the transaction, because that may run more than once.
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

// keepFiles stores the files of a run, and shows them in its thread.
func (t runsTx) keepFiles(e approvers.Execution, rows []store.File, files []File) error {
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
		if err := t.outbox.add(store.OutboxMessage{Kind: store.OutboxAttachment, Ref: e.ID, Step: i, To: store.ToConversation + e.Conversation}); err != nil {
			return err
		}
	}
	return nil
}

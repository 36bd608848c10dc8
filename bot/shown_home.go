package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// rendering names what was shown of what was clicked: the message, or of a Home tab the part that is about the request.
func (s seen) rendering() string {
	if s.Surface.Kind != store.SurfaceHome || s.Request == nil {
		return s.shown.Hash
	}
	sum := sha256.Sum256(s.itemShown())
	return hex.EncodeToString(sum[:])
}

// itemShown is what a Home tab showed of a request, as a message of its own: what others are asked about is none of its history.
func (s seen) itemShown() []byte {
	var whole struct {
		Blocks []json.RawMessage `json:"blocks"`
	}
	item := struct {
		Text   string            `json:"text"`
		Blocks []json.RawMessage `json:"blocks"`
	}{}
	if json.Unmarshal(s.shown.Body, &whole) == nil {
		for _, b := range whole.Blocks {
			var named struct {
				ID string `json:"block_id"`
			}
			if json.Unmarshal(b, &named) == nil && strings.HasPrefix(named.ID, s.Request.ID+":") {
				item.Blocks = append(item.Blocks, b)
			}
		}
	}
	body, err := json.Marshal(item)
	if err != nil { // it was JSON a moment ago
		return nil
	}
	return body
}

// noteItem records what a Home tab showed of a request, once somebody acts on it: a Home tab is drawn too often to record all that it shows.
func (b *Bot) noteItem(ctx context.Context, s seen, who approvers.Identity) error {
	if s.Surface.Kind != store.SurfaceHome || s.Request == nil || s.was().Digest == "" {
		return nil
	}
	_, err := b.Desk.Viewed(ctx, desk.Viewing{Request: s.Request.ID, Digest: s.was().Digest, Who: who.ID, As: string(store.SurfaceHome), Body: s.itemShown()})
	return err
}

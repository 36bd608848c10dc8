package workspaceclient

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// View is an open modal.
type View struct {
	ID         string `json:"id"`
	CallbackID string `json:"callback_id"`
	Title      struct{ Text string }
	Submit     *struct{ Text string } `json:"submit"`
	Blocks     json.RawMessage        `json:"blocks"`
}

// Views lists the person's open modals, the top one last.
func (v Client) Views(ctx context.Context) ([]View, error) {
	var out struct{ Views []View }
	err := v.call(ctx, http.MethodGet, v.path("views"), nil, &out)
	return out.Views, err
}

// Submit sends a modal with the given values, by block id. A value for a person is the person's id or name. A value for
// an option is its value or its text. A value for a day has the form 2026-03-02. Commas separate several choices.
func (v Client) Submit(ctx context.Context, view string, values map[string]string) error {
	views, err := v.Views(ctx)
	if err != nil {
		return err
	}
	sent := map[string]any{}
	for block, value := range values {
		sent[block] = value
	}
	if i := slices.IndexFunc(views, func(open View) bool { return open.ID == view }); i >= 0 {
		for _, e := range Elements(views[i].Blocks) {
			if value, given := values[e.BlockID]; given && e.takesSeveral() {
				sent[e.BlockID] = splitChoices(value)
			}
		}
	}
	return v.call(ctx, http.MethodPost, v.path("views", view, "submit"), map[string]any{"values": sent}, nil)
}

// Close closes a modal.
func (v Client) Close(ctx context.Context, view string) error {
	return v.call(ctx, http.MethodPost, v.path("views", view, "close"), map[string]any{}, nil)
}

// takesSeveral reports whether more than one value can be chosen in the element.
func (e Element) takesSeveral() bool {
	return e.Type == "checkboxes" || strings.HasPrefix(e.Type, "multi_")
}

func splitChoices(value string) []string {
	out := []string{}
	for one := range strings.SplitSeq(value, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

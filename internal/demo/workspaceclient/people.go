package workspaceclient

import (
	"context"
	"net/http"
)

// Person is a person or a bot in the workspace.
type Person struct {
	ID       string `json:"id"`
	Name     string `json:"name"` // the handle, such as teo
	RealName string `json:"real_name"`
	Deleted  bool   `json:"deleted"`
	Bot      bool   `json:"is_bot"`
	Profile  struct {
		DisplayName string `json:"display_name"`
	} `json:"profile"`
}

// Called returns the name that people see.
func (p Person) Called() string {
	if p.Profile.DisplayName != "" {
		return p.Profile.DisplayName
	}
	return p.RealName
}

// People lists all people and bots in the workspace except the app's own bot.
func (v Client) People(ctx context.Context) ([]Person, error) {
	var out struct{ People []Person }
	err := v.call(ctx, http.MethodGet, "/people", nil, &out)
	return out.People, err
}

// Channels lists the ids of the channels and direct messages that the person is in.
func (v Client) Channels(ctx context.Context) ([]string, error) {
	var out struct {
		Channels []struct {
			ID string `json:"id"`
		}
	}
	err := v.call(ctx, http.MethodGet, v.path("channels"), nil, &out)
	ids := make([]string, len(out.Channels))
	for i, c := range out.Channels {
		ids[i] = c.ID
	}
	return ids, err
}

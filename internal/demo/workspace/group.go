package workspace

// userGroup is a user group ("@support").
type userGroup struct {
	ID      string   `json:"id"`
	Handle  string   `json:"handle"`
	Name    string   `json:"name"`
	Users   []string `json:"users"`
	Updated int64    `json:"updated"`
}

func (g *userGroup) json(team string, withUsers bool) object {
	out := object{
		"id": g.ID, "team_id": team, "is_usergroup": true, "is_subteam": true, "name": g.Name,
		"handle": g.Handle, "description": "", "is_external": false, "date_create": 0,
		"date_update": g.Updated, "date_delete": 0, "auto_type": nil, "created_by": "", "updated_by": "",
		"user_count": len(g.Users), "prefs": object{"channels": []string{}, "groups": []string{}},
	}
	if withUsers {
		out["users"] = append([]string{}, g.Users...)
	}
	return out
}

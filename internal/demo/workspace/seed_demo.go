package workspace

// Tokens and the signing secret of the demo workspace. Outside of the demo, the tokens and the secret are not valid.
const (
	DemoBotToken      = "xoxb-countersign-demo"
	DemoAppToken      = "xapp-1-A0001-countersign-demo"
	DemoSigningSecret = "c0de51c0de51c0de51c0de51c0de51c0"
)

// OpenSeed returns the demo's workspace for a test of any app. The app has every scope and gets every event.
func OpenSeed() Seed {
	s := DemoSeed()
	s.App.Scopes, s.App.Events = nil, nil
	s.App.Shortcuts = append(s.App.Shortcuts, SeedShortcut{Name: "Ask Countersign", CallbackID: "ask_countersign", Type: "global"},
		SeedShortcut{Name: "Hand this to Countersign", CallbackID: "hand_over", Type: "message"})
	return s
}

// DemoSeed returns the workspace of the demo. The workspace has support colleagues who make requests, and three levels
// of approvers. The workspace also has one account of each kind that must never approve.
func DemoSeed() Seed {
	everyone := []string{"U0001", "U0002", "U0003", "U0004", "U0100", "U0101"}
	with := func(extra ...string) []string { return append(append([]string{}, everyone...), extra...) }
	return Seed{
		Team: SeedTeam{ID: "T0001", Name: "Countersign Demo", Domain: "countersign-demo"},
		App: SeedApp{
			ID: "A0001", BotID: "B0001", BotUser: "U0BOT", Name: "Countersign",
			BotTokens: []string{DemoBotToken}, AppTokens: []string{DemoAppToken}, SigningSecret: DemoSigningSecret,
			// The scopes that are in the output of "countersign manifest".
			Scopes: []string{
				"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "dnd:read", "files:read", "files:write",
				"groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read", "usergroups:read",
				"users:read", "users:read.email",
			},
			Events: []string{
				"agent_session_stopped", "app_context_changed", "app_home_opened", "app_mention",
				"assistant_thread_context_changed", "assistant_thread_started",
				"channel_archive", "channel_created", "channel_deleted", "channel_left", "channel_rename",
				"channel_shared", "channel_unarchive", "channel_unshared", "dnd_updated_user", "group_archive", "group_deleted", "group_left", "group_rename",
				"group_unarchive", "member_joined_channel", "message.channels", "message.groups", "message.im", "message.mpim",
				"subteam_created", "subteam_members_changed", "subteam_updated", "team_join", "user_change",
			},
			Commands: []SeedCommand{
				{Command: "/countersign", Description: "What waits for you, what you asked for, and what you can do about it", UsageHint: "pending · explain · history · away · back · pause · resume · grants · help", ShouldEscape: true},
			},
			Shortcuts: []SeedShortcut{{Name: "Explain this approval", CallbackID: "explain_approval", Type: "message"}},
		},
		People: []SeedPerson{
			{ID: "U0001", Name: "ada", RealName: "Ada Okafor", DisplayName: "Ada", Title: "Support Agent", Email: "ada@example.com", TZ: "Europe/Berlin"},
			{ID: "U0002", Name: "teo", RealName: "Teo Marchetti", DisplayName: "Teo", Title: "Team Lead", Email: "teo@example.com", TZ: "America/New_York"},
			{ID: "U0003", Name: "ingrid", RealName: "Ingrid Solheim", DisplayName: "Ingrid", Title: "Finance Director", Email: "ingrid@example.com", TZ: "Europe/London", Admin: true},
			{ID: "U0004", Name: "kenji", RealName: "Kenji Arakawa", DisplayName: "Kenji", Title: "Finance Director", Email: "kenji@example.com", TZ: "Asia/Tokyo"},
			{ID: "U0100", Name: "sam", RealName: "Sam Whitfield", DisplayName: "Sam", Title: "Customer Support", Email: "sam@example.com", TZ: "America/Los_Angeles"},
			{ID: "U0101", Name: "priya", RealName: "Priya Nair", DisplayName: "Priya", Title: "Support Agent, on call", Email: "support-oncall@example.com", TZ: "Asia/Kolkata"},
			{ID: "U0900", Name: "gus", RealName: "Gus Lindqvist", DisplayName: "Gus (guest)", Title: "Contractor", Email: "gus@contractor.example.com", TZ: "Europe/Stockholm", Guest: true},
			{ID: "U0901", Name: "uma", RealName: "Uma Beaumont", DisplayName: "Uma (guest)", Title: "Auditor, one channel", Email: "uma@auditor.example.com",
				TZ: "Europe/Paris", SingleGuest: true},
			{ID: "U0902", Name: "dora", RealName: "Dora Petrova", DisplayName: "Dora", Title: "Team Lead (left)", Email: "dora@example.com", TZ: "Europe/Sofia", Deactivated: true},
			{ID: "U0903", Name: "xavier", RealName: "Xavier Roy", DisplayName: "Xavier", Title: "Supplier", Email: "xavier@supplier.example.com",
				TZ: "America/Toronto", Team: "T0999", Stranger: true},
			{ID: "U0904", Name: "deploybot", RealName: "Deploy Bot", DisplayName: "Deploy Bot", TZ: "UTC", Bot: true},
		},
		Groups: []SeedGroup{
			{ID: "S0001", Handle: "support", Name: "Support", Users: []string{"U0001", "U0101"}},
		},
		Channels: []SeedChannel{
			{ID: "C0000", Name: "general", Topic: "Company-wide", General: true, Members: with("U0900", "U0BOT", "U0904")},
			{ID: "C0001", Name: "support", Topic: "Ask @Countersign about orders, addresses and refunds", Members: with("U0900", "U0901", "U0BOT")},
			{ID: "C0002", Name: "support-approvals", Topic: "Cards that wait for a countersignature", Members: []string{"U0001", "U0101", "U0002", "U0003", "U0004", "U0BOT"}},
			{ID: "C0003", Name: "finance", Topic: "Finance", Private: true, Members: []string{"U0002", "U0003", "U0004"}},
			{ID: "C0004", Name: "supplier-desk", Topic: "Shared with our supplier", Shared: true, Members: []string{"U0001", "U0100", "U0903", "U0BOT"}},
		},
		Hint: SeedHint{
			Title: "Try it",
			Lines: []string{
				"You are *Sam* in customer support. Write to the bot here: `@Countersign refund ORD-123, it arrived broken`",
				"A refund is high risk, so it waits for the *Team Lead*. Choose *Teo* at the left: the card is in his messages with Countersign. Approve it, reject it with a reason, or modify it.",
				"Come back as Sam and read the answer in the thread. Then try `@Countersign cancel account USR-456` and reject it as *Ingrid*, or `@Countersign refund 600 USD of order ORD-129, damaged`, which takes the Team Lead and two Finance Directors.",
				"When a Support Agent does not decide within 45 seconds, the Team Lead is told: `@Countersign take 10% off order ORD-131`",
			},
			User: "U0100", Channel: "C0001",
		},
	}
}

//go:build !race

package mutants

func edge(run string) campaign { return campaign{pkg: "./bot", run: run} }

// slackMutants break the code that deals with Slack and its users.
var slackMutants = []mutant{
	{
		name:  "requests over HTTP are accepted without a valid signature",
		edits: []edit{{"bot/transport/http.go", "	if err := verifier.Ensure(); err != nil {\n", "	if err := verifier.Ensure(); err != nil && len(body) == 0 {\n"}},
		by:    []campaign{edge("^TestUnsignedRequests$")},
	},
	{
		name:  "requests over HTTP do something a second time",
		edits: []edit{{"bot/transport/http.go", "	if q.once && !h.replays.first(", "	if q.once && !q.once && !h.replays.first("}},
		by:    []campaign{edge("^TestReplay$")},
	},
	{
		name:  "each replica renews the bot token",
		edits: []edit{{"bot/rotation/rotation.go", "	case !k.alone || token == t.Refresh:\n", "	case k.alone && token == t.Refresh:\n"}},
		by:    []campaign{{pkg: "./bot/rotation", run: "^TestReplicas$"}},
	},
	{
		name:  "the store has the bot token in clear",
		edits: []edit{{"bot/rotation/tokens.go", "	return c.Seal(nil, nil, text, nil), nil\n", "	return append(c.Seal(nil, nil, nil, nil)[:0], text...), nil\n"}},
		by:    []campaign{{pkg: "./bot/rotation", run: "^TestReplicas$"}},
	},
	{
		name:  "new tokens are lost if the store refuses them",
		edits: []edit{{"bot/rotation/rotation.go", "	if k.unsaved != nil {\n		return k.save(ctx)\n	}\n	t, err", "	k.unsaved = nil\n	t, err"}},
		by:    []campaign{{pkg: "./bot/rotation", run: "^TestStoreRefuses$"}},
	},
	{
		name:  "guests may decide",
		edits: []edit{{"bot/directory/users.go", "		Guest:   u.IsRestricted || u.IsUltraRestricted,\n", "		Guest:   u.IsRestricted && u.IsUltraRestricted,\n"}},
		by:    []campaign{edge("^TestIdentityMatrix$")},
	},
	{
		name:  "an answer about somebody else counts",
		edits: []edit{{"bot/directory/users.go", "		if u.ID != user && (u.Enterprise.ID == \"\" || u.Enterprise.ID != user) {\n", "		if u.ID == \"\" {\n"}},
		by:    []campaign{edge("^TestIdentityMatrix$")},
	},
	{
		name:  "a click on a risky call is judged by cached facts about the person",
		edits: []edit{{"bot/directory/groups.go", "{ return risk >= approvers.High || !risk.Valid() }\n", "{ return !risk.Valid() }\n"}},
		by:    []campaign{edge("^TestWhenSlackIsAskedAnew$"), edge("^TestAttacks$")},
	},
	{
		name:  "a click shares an answer that Slack may have given before the click",
		edits: []edit{{"bot/directory/cache.go", "r.begun && (fresh || r.era != m.era)", "r.begun && r.era != m.era"}},
		by:    []campaign{{pkg: "./bot/directory", run: "^TestOneRequestForAll$"}, {pkg: "./cmd/countersign", run: "^TestManyClicksAboutGroups$"}},
	},
	{
		name:  "cards are posted in channels that are shared with another organisation",
		edits: []edit{{"bot/channels.go", "	if err != nil || !shared || mayShare(vm.Policy, id) {\n", "	if err != nil || shared || !shared {\n"}},
		by:    []campaign{edge("^TestSharedChannelThatNobodyToldOf$")},
	},
	{
		name:  "hidden characters are not made visible",
		edits: []edit{{"internal/visible/visible.go", "	case blankLetters[r], unicode.Is(unicode.Variation_Selector, r):\n		return true\n", "	case blankLetters[r], unicode.Is(unicode.Variation_Selector, r):\n		return false\n"}},
		by:    []campaign{{pkg: "./bot/render/block", run: "^TestVisible$"}},
	},
	{
		name:  "secret arguments are written out",
		edits: []edit{{"bot/render/argument/masked_values.go", "	text := MaskedText(r.Args, r.Secrets)\n	if text == NoArguments", "	text := MaskedText(r.Args, nil)\n	if text == NoArguments"}},
		by:    []campaign{edge("^TestSecretsStayMasked$")},
	},
}

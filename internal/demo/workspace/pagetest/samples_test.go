package pagetest

import (
	"github.com/slack-go/slack"
)

// sample is a block as an app sends it, and words that must appear on the page.
type sample struct {
	block slack.Block
	shows []string
}

func mrkdwn(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, text, false, false)
}

func rich(elements ...slack.RichTextSectionElement) *slack.RichTextBlock {
	return slack.NewRichTextBlock("", slack.NewRichTextSection(elements...))
}

func words(text string) slack.RichTextSectionElement {
	return slack.NewRichTextSectionTextElement(text, nil)
}

func picture(alt string) *slack.ImageBlockElement {
	return slack.NewImageBlockElement("https://127.0.0.1:1/none.png", alt)
}

func button(id, text string) *slack.ButtonBlockElement {
	return slack.NewButtonBlockElement(id, "value", plain(text))
}

func task(id, title string, status slack.TaskCardStatus) slack.TaskCardBlock {
	card := slack.NewTaskCardBlock(id, title).WithStatus(status)
	card.Details = rich(words("Details of " + title))
	card.Sources = []slack.TaskCardSource{slack.NewTaskCardSource("https://example.com/"+id, "Source "+id)}
	return *card
}

// messageSamples returns the blocks for messages, in the order of the screenshots.
func messageSamples() []sample {
	wide := slack.NewSectionBlock(mrkdwn("A section with *bold* text"), []*slack.TextBlockObject{plain("Field one"), mrkdwn("Field _two_")}, slack.NewAccessory(picture("a picture beside it")))
	return []sample{
		{slack.NewHeaderBlock(plain("A heading")), []string{"A heading"}},
		{wide, []string{"A section with bold text", "Field one", "Field two"}},
		{slack.NewDividerBlock(), nil},
		{slack.NewContextBlock("", picture("a small picture"), mrkdwn("Context text")), []string{"Context text"}},
		{slack.NewImageBlock("https://127.0.0.1:1/none.png", "an image's words", "", plain("Image title")), []string{"Image title", "an image's words"}},
		{slack.NewActionBlock("", elements()...), []string{"Plain", "Primary", "Danger", "Workflow", "Checkbox", "Radio"}},
		{slack.NewContextActionsBlock("",
			slack.NewFeedbackButtonsBlockElement("feedback", slack.NewFeedbackButton(plain("Good"), "good"), slack.NewFeedbackButton(plain("Bad"), "bad")),
			slack.NewIconButtonBlockElement("trash", plain("Throw away"), "trash")), []string{"Good", "Bad", "Throw away"}},
		{richTexts(), []string{"plain bold italic struck", "@Ada", "#support", "@support", "@here", "#c0392b", "Countersign Demo", "a source", "preformatted", "quoted", "first", "second", "inside"}},
		{slack.NewMarkdownBlock("", "## Markdown\n\nwith **bold**, `code` and\n\n- [x] a task\n\n| A | B |\n| - | -: |\n| one | 2 |"), []string{"Markdown", "a task", "one"}},
		{slack.NewTableBlock("").WithColumnSettings(slack.ColumnSetting{Align: slack.ColumnAlignmentLeft}, slack.ColumnSetting{Align: slack.ColumnAlignmentRight}).
			AddRow(slack.NewTableRawTextCell("Name"), slack.NewTableRawTextCell("Amount")).
			AddRow(slack.NewTableRichTextCell(slack.NewRichTextSection(words("in rich text"))), slack.NewTableRawNumberCell(12.5)), []string{"Name", "in rich text", "12.5"}},
		{planBlock(), []string{"Plan title", "Look it up", "Pay it back", "1 of 3 done"}},
		{new(task("t4", "Alone", slack.TaskCardStatusError)), []string{"Alone", "Details of Alone", "Source t4"}},
		{slack.NewInputBlock("", plain("An input in a message"), plain("its hint"), slack.NewPlainTextInputBlockElement(plain("write"), "in_message")), []string{"An input in a message", "its hint"}},
	}
}

// plainSamples returns the blocks for which the page shows only the text.
func plainSamples() []sample {
	card := &slack.CardBlock{Type: slack.MBTCard, Title: mrkdwn("Card title"), Body: mrkdwn("The body of the card."), Actions: &slack.BlockElements{ElementSet: []slack.BlockElement{button("card_go", "Card button")}}}
	inside := slack.NewSectionBlock(plain("Inside"), nil, nil)
	return []sample{
		{card, []string{"Card title", "The body of the card.", "Card button"}},
		{slack.NewCarouselBlock(card), []string{"Card title"}},
		{slack.NewContainerBlock(inside).WithTitle(plain("Container title")), []string{"Container title", "Inside"}},
		{slack.NewLayoutBlock("Layout label", &slack.LayoutRow{Items: []*slack.LayoutItem{{Block: inside}}}), []string{"Layout label", "Inside"}},
		{slack.NewAuthProviderBlock("provider", plain("Auth provider"), false), []string{"Auth provider"}},
		{slack.NewVideoBlock("https://example.com/v", "https://127.0.0.1:1/none.png", "what the video shows", "", plain("Video title")), []string{"Video title", "what the video shows"}},
		{slack.NewDataTableBlock("Data table's caption").AddRow(slack.NewDataTableRawTextCell("Key")).AddRow(slack.NewDataTableRawTextCell("row one")), []string{"Data table's caption", "Key", "row one"}},
		{slack.NewDataVisualizationBlock("A pie", slack.NewDataVisualizationPieChart(slack.NewDataVisualizationSegment("Most", 70))), []string{"A pie", "Most"}},
		{slack.NewCallBlock("R0001"), []string{"call"}},
	}
}

func planBlock() *slack.PlanBlock {
	plan := slack.NewPlanBlock("Plan title")
	plan.Tasks = []slack.TaskCardBlock{task("t1", "Look it up", slack.TaskCardStatusComplete), task("t2", "Pay it back", slack.TaskCardStatusInProgress), task("t3", "Say so", slack.TaskCardStatusPending)}
	return plan
}

func richTexts() *slack.RichTextBlock {
	style := func(s slack.RichTextSectionTextStyle) *slack.RichTextSectionTextStyle { return &s }
	return slack.NewRichTextBlock("",
		slack.NewRichTextSection(
			words("plain "),
			slack.NewRichTextSectionTextElement("bold ", style(slack.RichTextSectionTextStyle{Bold: true})),
			slack.NewRichTextSectionTextElement("italic ", style(slack.RichTextSectionTextStyle{Italic: true})),
			slack.NewRichTextSectionTextElement("struck", style(slack.RichTextSectionTextStyle{Strike: true})),
			slack.NewRichTextSectionTextElement(" code", style(slack.RichTextSectionTextStyle{Code: true})),
			words(" "), slack.NewRichTextSectionUserElement("U0001", nil),
			words(" "), slack.NewRichTextSectionChannelElement("C0001", nil),
			words(" "), slack.NewRichTextSectionUserGroupElement("S0001"),
			words(" "), slack.NewRichTextSectionBroadcastElement("here"),
			words(" "), slack.NewRichTextSectionLinkElement("https://example.com", "a link", nil),
			words(" "), slack.NewRichTextSectionEmojiElement("tada", 0, nil),
			words(" "), slack.NewRichTextSectionColorElement("#c0392b"),
			words(" "), slack.NewRichTextSectionTeamElement("T0001", nil),
			words(" "), slack.NewRichTextSectionCitationElement("https://example.com/cited", "a source", 1, slack.NewRichTextCitationWebDetails("Example")),
			words(" "), slack.NewRichTextSectionDateElement(1772960400, "{date_short}", nil, nil),
		),
		&slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{words("preformatted")}},
		&slack.RichTextQuote{Type: slack.RTEQuote, Elements: []slack.RichTextSectionElement{words("quoted")}},
		slack.NewRichTextList(slack.RTEListBullet, 0, slack.NewRichTextSection(words("first")), slack.NewRichTextSection(words("second"))),
		slack.NewRichTextList(slack.RTEListOrdered, 1, slack.NewRichTextSection(words("inside"))),
	)
}

// The function "elements" returns the elements for a message's actions block.
func elements() []slack.BlockElement {
	date := slack.NewDatePickerBlockElement("date")
	date.InitialDate = "2026-03-09"
	hour := slack.NewTimePickerBlockElement("time")
	hour.InitialTime = "09:30"
	moment := slack.NewDateTimePickerBlockElement("moment")
	moment.InitialDateTime = 1772960400
	choices := []*slack.OptionBlockObject{option("one", "Option one", ""), option("two", "Option two", "described")}
	return []slack.BlockElement{
		button("plain", "Plain"), button("primary", "Primary").WithStyle(slack.StylePrimary), button("danger", "Danger").WithStyle(slack.StyleDanger),
		slack.NewWorkflowButtonBlockElement(plain("Workflow"), &slack.Workflow{Trigger: &slack.WorkflowTrigger{URL: "https://example.com/t"}}, "workflow"),
		slack.NewOverflowBlockElement("overflow", choices...), date, hour, moment,
		slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain("Static"), "static", choices...),
		slack.NewOptionsSelectBlockElement(slack.OptTypeExternal, plain("External"), "external"),
		slack.NewOptionsSelectBlockElement(slack.OptTypeUser, plain("User"), "user"),
		slack.NewOptionsSelectBlockElement(slack.OptTypeConversations, plain("Conversation"), "conversation"),
		slack.NewOptionsSelectBlockElement(slack.OptTypeChannels, plain("Channel"), "channel"),
		slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, plain("Several"), "several", choices...),
		slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeExternal, plain("Several external"), "several_external"),
		slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeUser, plain("People"), "several_users"),
		slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeConversations, plain("Conversations"), "several_conversations"),
		slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeChannels, plain("Channels"), "several_channels"),
		slack.NewCheckboxGroupsBlockElement("boxes", option("a", "Checkbox", "")),
		slack.NewRadioButtonsBlockElement("radios", option("b", "Radio", "")),
	}
}

// The function "inputs" returns the elements for inputs in a modal.
func inputs() []slack.BlockElement {
	var out []slack.BlockElement
	for _, element := range elements() {
		switch element.(type) {
		case *slack.ButtonBlockElement, *slack.WorkflowButtonBlockElement, *slack.OverflowBlockElement:
		default:
			out = append(out, element)
		}
	}
	return append(out,
		slack.NewPlainTextInputBlockElement(plain("plain text"), "text"),
		slack.NewRichTextInputBlockElement(plain("rich text"), "rich"),
		slack.NewEmailTextInputBlockElement(plain("e-mail"), "email"),
		slack.NewURLTextInputBlockElement(plain("address"), "url"),
		slack.NewNumberInputBlockElement(plain("number"), "number", false),
		slack.NewFileInputBlockElement("file"),
	)
}

// Package form draws the forms (modals) that buttons open, and reads the submitted forms. It also has the words of each
// refused action (denied.go).
//
// A form is made from a ClickTarget, which is the subject of a click as it was shown. Details shows everything about a
// request, and Explainer explains who has to approve it. Modify turns the JSON schema of a tool into inputs (fields.go).
// EditArgs, ParseAllowance and ElicitationValues read the answers.
//
// The name of a function says what it returns. A function whose name ends with Text, such as DeniedText, returns a text
// for the person. TextModal returns a modal that has only such a text. Names with Denied are about an
// [approvers.Denied]: the bot does not let the person do something. Names with SlackRefused are about a form that Slack
// did not accept.
//
// A form that is offered promises nothing: the workflow checks again when the form is submitted. The metadata of a form
// only identifies the rendering. Secret arguments are masked, except in the form that reveals them to one person.
package form

// Package thread draws the messages in a conversation with the agent: steps with their calls, answers, questions to the
// people who asked, files, and the reasons why the agent does not continue.
//
// Text of the model is parsed by package markdown. Text of tools is literal. An answer is shown whole, in several
// messages or with a file.
package thread

// Package card draws the approval card of a request, the bundle of several requests, the card queue, and the message
// about a run whose outcome is unknown.
//
// A card shows the exact arguments, or says how much is missing. A call that is not shown whole can't be approved on the
// card. The headline and the buttons of a bundle fit together on a phone's screen. The card of a decided request has two
// lines.
//
// The package draws no forms: the buttons of a card name them (package control), and package form draws them.
package card

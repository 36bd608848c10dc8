// Package control names the controls of messages and forms: the buttons (action IDs) and the inputs (block IDs). It also
// has the values that these controls carry: ButtonToken for a button, and FormToken for a form.
//
// A token only identifies a rendering, and grants nothing. The package draws nothing and decides nothing.
package control

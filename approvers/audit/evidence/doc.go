// Package evidence renders the page for an auditor: the complete story of each selected request.
//
// The page is based on the records of the request's chain and their payloads. Each payload is compared with the hash in
// its record while the page is made. Only people's names, the requester's message, and values that differ from the
// chain come from the stored request. No part of the page comes from a current card or from memory. The page is one
// HTML file that loads nothing and runs nothing. The page can be printed.
package evidence

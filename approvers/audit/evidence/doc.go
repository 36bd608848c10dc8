// Package evidence renders the page for an auditor: the complete story of one request, from its audit chain alone.
//
// The page is based on the chain's records and their payloads. Each payload is verified against the hash in the chain
// while the page is made. No part of the page comes from a current card or from memory. The page is one HTML file that
// loads nothing and runs nothing. The page can be printed.
package evidence

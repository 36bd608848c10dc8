// Package setup installs hooks in the settings of coding agents, removes them, and finds what makes them fail open.
//
// settings.go says what each agent's settings need, and where they are; jsonc.go changes a JSON file and leaves
// everything else as it is, byte for byte, including comments; install.go installs and removes; examine.go is the
// doctor's part; policy.go has the part of a policy file that each agent needs.
package setup

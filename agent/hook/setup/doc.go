// Package setup installs and removes hooks in the settings of coding agents. The package also finds settings that would
// let a call run although the hook failed.
//
// settings.go describes the settings of each agent. jsonc.go changes a JSON file, and keeps all other bytes of the
// file, including comments. install.go installs and removes hooks. examine.go has the checks for countersign doctor.
// policy.go has the part of a policy file that each agent needs.
package setup

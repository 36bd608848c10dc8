// Package setup installs and removes hooks in the settings of coding agents. The package also finds settings that would
// let a call run although the hook has failed.
//
// settings.go describes the settings of each agent. jsonc.go changes a JSON file, and keeps all other bytes of the
// file, including comments. install.go installs and removes hooks. examine.go has the checks for countersign doctor.
// examine_http.go has the checks of hooks over HTTP. policy.go has a part of a policy file for each agent.
package setup

// Package openstore opens the store that an address names: a file or a PostgreSQL database. The commands, serve and the
// demo open their stores with this package.
//
// The package owns the choice of the backend, and the errors of opening. Each error has an exit code and tells the
// operator what to do. [Existing] opens the store for a command, and never creates a store. [ToRead] does the same for a
// command that only reads.
//
// The package does not find out whether a bot is running. A backend can create, migrate or repair a store while it
// opens the store, except with [ToRead]. The package itself only restores damaged signed heads. If a bot holds the store, package task asks that bot.
package openstore

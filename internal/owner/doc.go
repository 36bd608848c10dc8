// Package owner gives new files the owner of other files. Operators often run commands as root, and the bot runs as
// another user. A file that root made would be unreadable for the bot.
package owner

package notice

// MaxPauseReason is the maximum length of the reason for a pause, in characters.
const MaxPauseReason = 300

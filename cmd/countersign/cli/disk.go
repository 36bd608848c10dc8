package cli

// DiskFull is how much room the disk of the store has to have: with less nothing is recorded.
const DiskFull = 100 << 20

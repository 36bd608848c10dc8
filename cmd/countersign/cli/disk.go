package cli

// DiskFull is the minimum free space on the store's disk, in bytes. If less space is free, the bot records nothing.
const DiskFull = 100 << 20

package cli

// DiskFull is the minimum free space on the store's disk, in bytes. With less free space, nothing is recorded.
const DiskFull = 100 << 20

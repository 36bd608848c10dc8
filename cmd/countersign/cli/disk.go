package cli

// DiskFull is the minimum free space on the store's disk, in bytes. With less, nothing is recorded.
const DiskFull = 100 << 20

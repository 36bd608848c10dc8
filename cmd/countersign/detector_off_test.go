//go:build !race

package main

// raceDetector says that the tests run with the race detector, which makes everything several times slower.
const raceDetector = false

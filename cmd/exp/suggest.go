package main

import "exp/experiments/spelling"

// nearest returns the candidate that word was probably meant to be; empty if none is
// near.
func nearest(word string, candidates []string) string { return spelling.Nearest(word, candidates) }

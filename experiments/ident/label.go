package ident

// StartSuffix ends the label of an evaluation of the weights that training starts
// from, and the name of its suite: "test@start" is scored before training, "test" after.
const StartSuffix = "@start"

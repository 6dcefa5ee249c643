package ident

// StartSuffix ends the label and suite name of an evaluation before training:
// "test@start" is scored before training, "test" after.
const StartSuffix = "@start"

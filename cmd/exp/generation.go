package main

import (
	"exp/cmd/exp/cli"
	"exp/harness/config"
	"exp/harness/evaluate"
)

// generationConfig is the flag that applies what a model's publisher recommends.
const generationConfig = "generation-config"

func generationFlag(of string) cli.Flag {
	return &cli.StringFlag{Name: generationConfig, Value: "none", Usage: of + "`HOW` is auto, to sample with " +
		"the temperature, top_p, top_k, min_p and repetition_penalty that the folder's generation_config.json " +
		"recommends, where no flag sets them, or none"}
}

// generation reports whether --generation-config asks for the settings that generation_config.json recommends, and
// notes them for the user. By default it does not: models, or a model before and after training, are then compared
// with the same settings, and evaluations from before this flag keep theirs.
func (a *app) generation(c *cli.Context, dir string) (bool, error) {
	wanted := false
	switch v := c.String(generationConfig); v {
	case "auto":
		wanted = true
	case "none":
	default:
		return false, a.Usagef("--%s %s: want auto, or none", generationConfig, v)
	}
	if p := c.String("protocol"); wanted && p != "" && p != config.None {
		return false, a.Usagef("--%s auto and --protocol both say how to sample: give one, and flags for what "+
			"differs", generationConfig)
	}
	list, err := evaluate.Recommended(dir)
	if err != nil && !wanted {
		return false, nil // whoever loads the weights tells
	}
	switch text := evaluate.RecommendedText(list); {
	case err != nil:
		return false, err
	case wanted && text == "":
		a.Note("generation_config.json recommends no settings of sampling, or is not there")
	case wanted:
		a.Note("sampling as generation_config.json recommends, unless flags differ: %s", text)
	case text != "":
		a.Note("generation_config.json recommends %s; --%s auto samples so, as vLLM and transformers do", text,
			generationConfig)
	}
	return wanted, nil
}

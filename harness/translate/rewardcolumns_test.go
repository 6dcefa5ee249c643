package translate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestRewardColumns(t *testing.T) {
	const both = "[extra_info reward_model]"
	for source, want := range map[string]string{
		"def score(data_source, solution_str, ground_truth, extra_info=None):\n    return solution_str == ground_truth\n": "[reward_model]",
		"async def score(\n    data_source: dict[str, int], solution_str,\n    ground_truth,\n    extra_info={},  # unused\n) -> float:\n" +
			"    # extra_info is not needed\n    return len(solution_str)\n": "[]",
		"def score(*, data_sources, solution_strs, ground_truths, extra_infos):\n    return [x['index'] for x in extra_infos]\n": "[extra_info]",
		"def score(solution_str, extra_info, ground_truth, data_source):\n    return extra_info['a'] == ground_truth\n":          both,
		"def score(solution_str, **kwargs):\n    return 1\n":                                                                     both,
		"def score(solution_str, *rest):\n    return 1\n":                                                                        both,
		"@wrapped\ndef score(solution_str, ground_truth, extra_info):\n    return 1\n":                                           both,
		"def score(solution_str, ground_truth, extra_info):\n    return f(locals())\n":                                           both,
		"def score(solution_str, how='(', ground_truth=1):\n    return 1\n":                                                      both,
		"score = lambda ground_truth: 1\n":                                                                                       both,
		"def score(a):\n    return 1\ndef score(extra_info):\n    return 1\n":                                                    both,
		"def scores(extra_info):\n    return 1\n":                                                                                both,
		"def score(solution_str, ground_truth":                                                                                   both,
	} {
		path := filepath.Join(t.TempDir(), "r.py")
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(rewardColumns(path, "score")); got != want {
			t.Errorf("%s for\n%s\nwant %s", got, source, want)
		}
	}
	if got := fmt.Sprint(rewardColumns(filepath.Join(t.TempDir(), "r.py"), "score")); got != both {
		t.Errorf("%s without a file", got)
	}
}

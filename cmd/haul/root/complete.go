package root

import (
	"slices"

	"github.com/spf13/cobra"

	"haul/internal/config"
	"haul/internal/solve"
	"haul/policies"
)

// What a shell offers after Tab: the words that a flag takes, by the flag's name, which means the
// same in every verb; files where it takes a file.

// words are what may stand behind a flag.
var words = map[string]func() []string{
	"config":    func() []string { return config.Names("") },
	"policy":    policies.Names,
	"from":      policies.Names,
	"model":     config.Recipes,
	"decode":    of("greedy", "pomo", "pomo8", "pomo:1", "pomo8:1", "sample:100", "sample8:100", "sgbs", "sgbs8", "eas:200", "eas8:200"),
	"precision": of("fp32", "tf32", "bf16", "auto"),
	"device":    of("cpu", "cuda:0", "auto"),
	"split":     of("test", "validation"),
	"objective": of("cost", "vehicles", "longest_route"),
	"distance":  of("rounded", "exact", "dimacs", "ceil", "trunc"),
	"goals":     of("held-out", "validation", "train", "all"),
	"method":    solve.Named,
	"set":       settingKeys,
	"with":      of("fleet=", "depots=", "shipments=", "distances=", "durations="),
}

// settingKeys are the keys of every recipe, each with what stands before its value.
func settingKeys() []string {
	all, err := config.Explain("", "")
	if err != nil {
		return nil
	}
	var keys []string
	for _, e := range all {
		keys = append(keys, e.Key+"=")
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// orFiles are flags whose value may be a file as well.
var orFiles = []string{"config", "from"}

func of(list ...string) func() []string { return func() []string { return list } }

// complete gives the flags of a verb, and of those below it, their words.
func complete(verb *cobra.Command) {
	for name, list := range words {
		if verb.Flags().Lookup(name) == nil {
			continue
		}
		if name == "set" && verb.Flags().Lookup("with") != nil {
			list = of("distance=", "times=", "decode=", "device=")
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if slices.Contains(orFiles, name) {
			directive = cobra.ShellCompDirectiveDefault
		}
		if name == "set" || name == "with" {
			directive |= cobra.ShellCompDirectiveNoSpace // a value follows
		}
		if err := verb.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return list(), directive
		}); err != nil {
			panic(err) // the flag is there, and nobody else gives it words
		}
	}
	for _, below := range verb.Commands() {
		complete(below)
	}
}

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/config"
)

// BadFlag words an error in a flag for a user: it suggests the nearest flag for a name that does
// not exist, and says what a value must be, without the parsing library's words.
func BadFlag(cmd *cobra.Command, err error) error {
	see := fmt.Sprintf("(see %s --help)", cmd.CommandPath())
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		name := unknown.GetSpecifiedName()
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := config.Nearest(name, names); near != "" {
			return Usagef("unknown flag --%s, did you mean --%s? %s", name, near, see)
		}
		return Usagef("unknown flag --%s %s", name, see)
	}
	if bad := new(pflag.InvalidValueError); errors.As(err, &bad) {
		kind := bad.GetFlag().Value.Type()
		if most := largest(kind); most != "" && errors.Is(err, strconv.ErrRange) {
			return Usagef("--%s is %s: at most %s can be given %s", bad.GetFlag().Name, bad.GetValue(), most, see)
		}
		return Usagef("--%s is %q: %s is needed %s", bad.GetFlag().Name, bad.GetValue(), kindOf(kind), see)
	}
	return Usagef("%s %s", err, see)
}

// InFlags words an error in a setting that a flag gave: the user wrote no --set.
func InFlags(cmd *cobra.Command, err error, keys map[string]string) error {
	if err == nil {
		return nil
	}
	for flag, key := range keys {
		f := cmd.Flags().Lookup(flag)
		if rest, ours := strings.CutPrefix(err.Error(), fmt.Sprintf("--set %s=%s:", key, f.Value)); ours && f.Changed {
			return Usagef("--%s %s:%s", flag, f.Value, rest)
		}
	}
	return err
}

// StandIns are the flags that were given, by the keys that they stand in for.
func StandIns(cmd *cobra.Command, keys map[string]string) map[string]string {
	flags := map[string]string{}
	for flag, key := range keys {
		if cmd.Flags().Changed(flag) {
			flags[key] = flag
		}
	}
	return flags
}

// largest is the largest whole number that a flag of a type holds; "" where it holds none.
func largest(flag string) string {
	switch flag {
	case "int32":
		return strconv.Itoa(math.MaxInt32)
	case "int", "int64":
		return strconv.Itoa(math.MaxInt)
	case "uint", "uint64":
		return strconv.FormatUint(math.MaxUint, 10)
	}
	return ""
}

// kindOf is a flag's type in words.
func kindOf(flag string) string {
	switch {
	case strings.HasPrefix(flag, "uint"):
		return "a whole number from 0 on"
	case strings.HasPrefix(flag, "int"):
		return "a whole number"
	case strings.HasPrefix(flag, "float"):
		return "a number"
	case flag == "bool":
		return "true or false"
	case flag == "duration":
		return "a time with its unit, for example 30s or 5m,"
	}
	return "another value"
}

// Cores bounds --workers by what the machine has: more of them only wait for each other, and each
// keeps memory of its own.
func (a *App) Cores(workers int) (int, error) {
	if workers < 1 {
		return 0, Usagef("--workers is %d: at least 1 is needed", workers)
	}
	if most := max(runtime.NumCPU(), runtime.GOMAXPROCS(0)); workers > most {
		s := "s"
		if most == 1 {
			s = ""
		}
		fmt.Fprintf(a.Stderr, "--workers is %d, this machine has %d core%s: %d used\n", workers, most, s, most)
		return most, nil
	}
	return workers, nil
}

// NewHelp is cobra's help verb, but for a topic that does not exist: that is wrong use.
func (a *App) NewHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB]",
		Short:   "Show the help of a verb",
		Example: "  haul help train",
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, name := range args {
				next, rest, err := at.Find([]string{name})
				if err != nil || next == at || len(rest) > 0 {
					return unknownVerb(at, name)
				}
				at = next
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

// unknownVerb says that there is no such verb, and names the nearest.
func unknownVerb(cmd *cobra.Command, name string) error {
	var names []string
	begins := ""
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		names = append(names, c.Name())
		if begins == "" && name != "" && strings.HasPrefix(c.Name(), strings.ToLower(name)) {
			begins = c.Name()
		}
	}
	hint := ""
	if near := cmp.Or(begins, config.Nearest(name, names)); near != "" {
		hint = fmt.Sprintf(", did you mean %q?", near)
	}
	return Usagef("%s has no command %q%s (see %s --help)", cmd.CommandPath(), name, hint, cmd.CommandPath())
}

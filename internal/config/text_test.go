package config

// Settings of each recipe from YAML text, as tests write them.

func Parse(name string, data []byte, sets []string) (*Config, error) {
	return as[*Config](gtRecipe.parse(&file{name: name, text: data}, sets))
}

func ParseAD(name string, data []byte, sets []string) (*AD, error) {
	return as[*AD](adRecipe.parse(&file{name: name, text: data}, sets))
}

func ParsePPO(name string, data []byte, sets []string) (*PPO, error) {
	return as[*PPO](ppoRecipe.parse(&file{name: name, text: data}, sets))
}

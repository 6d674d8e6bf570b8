package ptx

func setFast(on bool) { fast = on }

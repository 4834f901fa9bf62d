package ollama

import "grove/server/driver"

func pullModel(x *driver.Request) error   { return missing(x) }
func deleteModel(x *driver.Request) error { return missing(x) }

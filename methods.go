package grove

// The methods that are part of the library.
import (
	_ "grove/method/draft"
	_ "grove/method/goose"
	_ "grove/method/guided"
	_ "grove/method/lookup"
	_ "grove/method/recycle"
	_ "grove/method/sam"
)

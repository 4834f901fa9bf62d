package method

import (
	"strings"
	"testing"
)

// TestUnbuilt: methods of the literature that grove has not are refused with the reason, options or not.
func TestUnbuilt(t *testing.T) {
	for name := range unbuilt {
		if _, known := registry[name]; known {
			t.Errorf("%s is registered", name)
		}
		for _, text := range []string{name, name + ":n=4"} {
			if _, err := Find(text); err == nil || !strings.Contains(err.Error(), "method: "+name+" is not built: ") {
				t.Errorf("%s: error %v", text, err)
			}
		}
	}
}

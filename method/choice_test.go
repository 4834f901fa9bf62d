package method

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestOptions expects the option behind a name to choose what opens the method, and equal options to give equal names.
func TestOptions(t *testing.T) {
	Register(Info{
		Name: "test-options", Open: func(Env) (Method, error) { return nil, nil },
		WithOption: func(option string) (func(Env) (Method, error), string, error) {
			var h float64
			if n, err := fmt.Sscanf(option, "h=%f", &h); n != 1 || err != nil {
				return nil, "", fmt.Errorf("option %q is not known; use h=X", option)
			}
			return func(Env) (Method, error) { return nil, fmt.Errorf("opened with %v", h) }, fmt.Sprintf("h=%v", h), nil
		},
	})
	Register(Info{Name: "test-bare"})
	defer func() {
		delete(registry, "test-options")
		delete(registry, "test-bare")
		ordered = slices.DeleteFunc(ordered, func(i Info) bool { return strings.HasPrefix(i.Name, "test-") })
	}()
	for list, want := range map[string]string{
		"test-options": "test-options", "test-options:h=0.30": "test-options:h=0.3", " test-bare , test-options:h=.3": "test-bare,test-options:h=0.3", "off": "", "": Auto,
	} {
		infos, auto, err := Parse(list)
		if got := Name(infos, auto); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", list, got, err, want)
		}
	}
	i, err := Find("test-options:h=0.30")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Open(Env{}); fmt.Sprint(err) != "opened with 0.3" {
		t.Errorf("%v", err)
	}
	for list, want := range map[string]string{
		"test-options:x": `method: test-options: option "x" is not known; use h=X`,
		"test-bare:h=1":  `method: test-bare takes no option; "h=1" is given`,
		"test-options:h=0.3,test-options:h=0.300": "named twice",
		"test-nothing:h=1":                        "is not known",
	} {
		if _, _, err := Parse(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", list, err, want)
		}
	}
}

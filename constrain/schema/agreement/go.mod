module grove/constrain/schema/agreement

go 1.26.0

require (
	github.com/dlclark/regexp2/v2 v2.12.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	grove v0.0.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace grove => ../../..

package document

// Draft is a version of JSON Schema.
type Draft int

// The drafts. Auto takes the one that $schema names, and Draft2020 where there is none.
const (
	Auto      Draft = 0
	Draft4    Draft = 4
	Draft6    Draft = 6
	Draft7    Draft = 7
	Draft2019 Draft = 2019
	Draft2020 Draft = 2020
)

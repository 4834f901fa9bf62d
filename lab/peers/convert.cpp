// Writes the grammar that llama.cpp makes of a JSON schema, from the standard input to the standard output: a converter for
// grove bench masks --converter. README.md says how to build it.
#include "json-schema-to-grammar.h"

#include <exception>
#include <iostream>
#include <iterator>
#include <string>

int main() {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    try {
        std::cout << json_schema_to_grammar(common_json::parse(text));
    } catch (const std::exception & e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
}

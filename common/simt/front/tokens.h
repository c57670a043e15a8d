// The tokens of a C++ file, as far as a rewriter of CUDA needs them: every token with the space before it, so that the
// tokens put together again are the file.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace simt::front {

enum class Kind {
  word,         // a name or a keyword
  number,       // 0x1.8p3, 1'000
  string,       // "..", R"(..)", u8"..", with its prefix and suffix
  character,    // 'a'
  punctuation,  // one character, but ->, ::, ..., <=, >=, <=>, <<=, >>= whole: so < and > are brackets or operators
  line,         // a directive: # 12 "file.cu" 1, #pragma unroll
  foreign,      // what comes from a system header, whole
  end
};

struct Token {
  Kind kind;
  std::string_view space;  // before it, comments too
  std::string_view text;
};

// Of preprocessed text (whose directives say which file a line is from) or of any other. The last token is of kind
// `end`.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace simt::front

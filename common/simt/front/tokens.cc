#include "simt/front/tokens.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace simt::front {
namespace {

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (c & 0x80); }
bool in_word(char c) { return starts_word(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Token> read() {
    std::vector<Token> tokens;
    for (;;) {
      const std::size_t before = at_;
      skip_space();
      const std::size_t begin = at_;
      const Kind kind = next();
      tokens.push_back({kind, text_.substr(before, begin - before), text_.substr(begin, at_ - begin)});
      if (kind == Kind::end) return tokens;
      if (kind != Kind::line || !enters_system_header(tokens.back().text)) continue;
      const std::size_t end = end_of_system_header();
      tokens.push_back({Kind::foreign, {}, text_.substr(at_, end - at_)});
      at_ = end;
    }
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool starts(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  // To after the next `what`, or to the end.
  void skip_past(std::string_view what) {
    const std::size_t found = text_.find(what, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + what.size();
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(peek())))
        ++at_;
      else if (starts("\\\n"))
        at_ += 2;
      else if (starts("//"))
        skip_line();
      else if (starts("/*"))
        at_ += 2, skip_past("*/");
      else
        return;
    }
  }

  // To the end of the line, which a backslash continues.
  void skip_line() {
    while (at_ < text_.size() && peek() != '\n') at_ += starts("\\\n") ? 2 : 1;
  }

  bool first_on_its_line() const {
    std::size_t i = at_;
    while (i > 0 && (text_[i - 1] == ' ' || text_[i - 1] == '\t')) --i;
    return i == 0 || text_[i - 1] == '\n';
  }

  Kind next() {
    if (at_ >= text_.size()) return Kind::end;
    const char c = peek();
    if (c == '#' && first_on_its_line()) {
      skip_line();
      return Kind::line;
    }
    if (starts_word(c)) {
      const std::size_t begin = at_;
      while (in_word(peek())) ++at_;
      const std::string_view word = text_.substr(begin, at_ - begin);
      if (peek() == '"' && (word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R")) {
        raw_string();
        return Kind::string;
      }
      const bool prefix = word == "L" || word == "u" || word == "U" || word == "u8";
      if (!prefix || (peek() != '"' && peek() != '\'')) return Kind::word;
      return quoted(peek());
    }
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))))) {
      number();
      return Kind::number;
    }
    if (c == '"' || c == '\'') return quoted(c);
    static constexpr std::string_view longer[] = {"<=>", "<<=", ">>=", "...", "->", "::", "<=", ">="};
    const auto found = std::find_if(std::begin(longer), std::end(longer), [&](auto each) { return starts(each); });
    at_ += found == std::end(longer) ? 1 : found->size();
    return Kind::punctuation;
  }

  void number() {
    while (in_word(peek()) || peek() == '.' || peek() == '\'') {
      const char c = peek();
      ++at_;
      if ((c == 'e' || c == 'E' || c == 'p' || c == 'P') && (peek() == '+' || peek() == '-')) ++at_;
    }
  }

  Kind quoted(char quote) {
    for (++at_; at_ < text_.size() && peek() != quote && peek() != '\n'; ++at_)
      if (peek() == '\\') ++at_;
    at_ = std::min(at_ + 1, text_.size());
    while (in_word(peek()) && !starts("__")) ++at_;  // a suffix: "name"s; but not in extern "C"__global__
    return quote == '"' ? Kind::string : Kind::character;
  }

  void raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) {
      at_ = text_.size();
      return;
    }
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    at_ = open;
    skip_past(close);
    while (in_word(peek())) ++at_;
  }

  // # 33 "/usr/include/stdio.h" 1 3 4: the 3 says so. With the name of the file that we are in it is a macro from
  // there.
  bool enters_system_header(std::string_view directive) {
    const std::size_t quote = directive.rfind('"');
    if (quote == std::string_view::npos || directive.find_first_of("0123456789") != directive.find_first_not_of("# \t"))
      return false;
    const std::size_t open = directive.find('"');
    const std::string_view file = directive.substr(open, quote + 1 - open);
    if (directive.substr(quote + 1).find('3') != std::string_view::npos) return file != file_;
    file_ = file;
    return false;
  }

  // The next directive that names a file which is none.
  std::size_t end_of_system_header() {
    for (std::size_t i = at_;;) {
      i = text_.find("\n# ", i);
      if (i == std::string_view::npos) return text_.size();
      ++i;
      const std::string_view directive = text_.substr(i, text_.find('\n', i) - i);
      if (directive.size() > 2 && std::isdigit(static_cast<unsigned char>(directive[2])) &&
          !enters_system_header(directive))
        return i;
    }
  }

  std::string_view text_;
  std::string_view file_;  // that we are in, in quotes
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) { return Reader(text).read(); }

}  // namespace simt::front
